#include "decoder/export/lcov.h"

#include <fmt/format.h>

#include "decoder/base/text.h"

namespace tailtrace {
namespace {

// A line of the file is one record: nothing inside a name may end it.
class Writer {
 public:
  explicit Writer(const std::function<bool(std::string_view)>& sink) : sink_(sink) {}

  void file(const std::string& path, const FileCoverage& file) {
    put("TN:tailtrace");
    put("SF:" + printable(path));
    functions(file);
    branches(file);
    for (const auto& [number, line] : file.lines) put(fmt::format("DA:{},{}", number, line.times));
    put(fmt::format("LF:{}", file.lines.size()));
    put(fmt::format("LH:{}", file.lines_executed()));
    put("end_of_record");
  }
  bool more() const { return more_; }

 private:
  void put(const std::string& line) { more_ = more_ && sink_(line); }

  // Every function that is named was executed.
  void functions(const FileCoverage& file) {
    for (const auto& [name, function] : file.functions)
      put(fmt::format("FN:{},{}", function.line, printable(name)));
    for (const auto& [name, function] : file.functions)
      put(fmt::format("FNDA:{},{}", function.times, printable(name)));
    put(fmt::format("FNF:{}", file.functions.size()));
    put(fmt::format("FNH:{}", file.functions.size()));
  }

  // Each conditional branch is a block with two ways out: 0 when taken, 1 when not.
  void branches(const FileCoverage& file) {
    std::size_t found = 0, hit = 0;
    for (const auto& [number, line] : file.lines) {
      std::size_t block = 0;
      for (const auto& [address, branch] : line.branches) {
        put(fmt::format("BRDA:{},{},0,{}", number, block, branch.taken));
        put(fmt::format("BRDA:{},{},1,{}", number, block, branch.not_taken));
        found += 2;
        hit += (branch.taken != 0 ? 1 : 0) + (branch.not_taken != 0 ? 1 : 0);
        ++block;
      }
    }
    put(fmt::format("BRF:{}", found));
    put(fmt::format("BRH:{}", hit));
  }

  const std::function<bool(std::string_view)>& sink_;
  bool more_ = true;
};

}  // namespace

void list_lcov(const Coverage& coverage, const std::function<bool(const std::string&)>& wanted,
               const std::function<bool(std::string_view)>& line) {
  Writer writer(line);
  for (const auto& [path, file] : coverage.files())
    if (writer.more() && wanted(path)) writer.file(path, file);
}

}  // namespace tailtrace
