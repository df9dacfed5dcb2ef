#include "plugin/provider/lldb_program.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "plugin/provider/child_process.h"

namespace tailtrace {
namespace {

constexpr int kPreferred = 22;
constexpr int kNewest = 40;
// The first whose trace commands ask the server for what they need.
constexpr int kOldest = 15;

// Names to try, the best first.
std::vector<std::string> names() {
  std::vector<std::string> result = {fmt::format("lldb-{}", kPreferred)};
  for (int version = kNewest; version >= kOldest; --version)
    if (version != kPreferred) result.push_back(fmt::format("lldb-{}", version));
  result.push_back("lldb");
  return result;
}

// What it says of its version; empty when it cannot be run.
std::string version_text_of(const std::string& path) {
  auto outcome = run_program({path, "--version"});
  return outcome ? std::move(outcome->output) : "";
}

// The first number in `lldb version 22.1.8`; 0 when there is none.
int first_number(const std::string& text) {
  static constexpr std::string_view kWords = "lldb version ";
  std::size_t at = text.find(kWords);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + kWords.size());
}

}  // namespace

Result<LldbProgram> find_lldb(const std::string& search_path) {
  const std::string fix = fmt::format("sudo apt-get install lldb-{}", kPreferred);
  std::string too_old = path_of_program("lldb-14", search_path);
  for (const std::string& name : names()) {
    std::string path = path_of_program(name, search_path);
    if (path.empty()) continue;
    LldbProgram found{path, version_text_of(path)};
    if (first_number(found.version_text) >= kOldest) return found;
    too_old = path;
  }
  if (too_old.empty())
    return fail(ErrorCode::kNoEngine, "cannot start LLDB", "there is no lldb in PATH", fix);
  return fail(ErrorCode::kNoEngine, "cannot start LLDB",
              fmt::format("{} is older than version {}, the first that reads a server's trace",
                          too_old, kOldest),
              fix);
}

}  // namespace tailtrace
