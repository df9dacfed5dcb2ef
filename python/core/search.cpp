#include "python/core/search.h"

#include <pybind11/stl.h>

#include <unordered_map>
#include <vector>

#include "decoder/history/location.h"
#include "python/core/walk.h"

namespace tailtrace::python {

namespace py = pybind11;

namespace {

// What is looked for: all that is given must hold.
struct Wanted {
  std::optional<std::uint64_t> address;
  std::optional<std::string> function;  // its whole name, for people or for the linker
  std::optional<std::string> file;      // a path or the end of one
  std::optional<unsigned> line;
  std::optional<std::string> kind;  // as Instruction.kind has it
};

// Asks for the names of an address once.
class Places {
 public:
  Places(ThreadHistory& thread, const Wanted& wanted) : thread_(thread), wanted_(wanted) {}

  bool match(Address address) {
    if (wanted_.address && address.value != *wanted_.address) return false;
    if (!wanted_.function && !wanted_.file) return true;
    auto known = known_.find(address.value);
    if (known != known_.end()) return known->second;
    bool found = thread_.with_symbols([&](Symbolizer& symbols) { return look(symbols, address); });
    known_.emplace(address.value, found);
    return found;
  }

 private:
  bool look(Symbolizer& symbols, Address address) const {
    if (wanted_.function && !has_name(symbols.function_at(address), *wanted_.function))
      return false;
    if (!wanted_.file) return true;
    std::optional<SourceLine> line = symbols.line_at(address);
    return line && ends_path(line->file, *wanted_.file) &&
           (!wanted_.line || line->line == *wanted_.line);
  }

  ThreadHistory& thread_;
  const Wanted& wanted_;
  std::unordered_map<std::uint64_t, bool> known_;
};

std::vector<std::uint64_t> search(ThreadHistory& thread, const Stretch& stretch,
                                  const Wanted& wanted, std::uint64_t limit) {
  const History& history = thread.history();
  std::vector<std::uint64_t> numbers;
  py::gil_scoped_release release;
  HistoryCursor cursor(history);
  Places places(thread, wanted);
  Progress progress("search", stretch.count);
  for (std::uint64_t i = 0; i < stretch.count && numbers.size() < limit; ++i) {
    progress.at(i);
    cursor.seek(stretch.at(i));
    const HistoryItem& item = cursor.item();
    if (item.is_gap) continue;
    if (wanted.kind && *wanted.kind != class_name(item.instruction.kind)) continue;
    if (places.match(item.instruction.address)) numbers.push_back(item.number);
  }
  progress.finish();
  return numbers;
}

}  // namespace

void bind_search(py::module_& module) {
  module.def("is_entry", [](ThreadHistory& thread, std::uint64_t address) {
    return thread.with_cursor([address](HistoryCursor&, Symbolizer& symbols) {
      return symbols.function_at({address}).entry.value == address;
    });
  });
  module.def("search",
             [](ThreadHistory& thread, std::uint64_t first, std::uint64_t count, std::int64_t step,
                std::optional<std::uint64_t> address, std::optional<std::string> function,
                std::optional<std::string> file, std::optional<unsigned> line,
                std::optional<std::string> kind, std::uint64_t limit) {
               Wanted wanted{address, std::move(function), std::move(file), line, std::move(kind)};
               return search(thread, Stretch{first, count, step}, wanted, limit);
             });
}

}  // namespace tailtrace::python
