// What a process under qemu executes, by its own words.
#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <climits>

#include "decoder/base/bytes.h"
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxCommandLine_bytes = 1 << 22;

std::string absolute(const std::string& file) {
  char path[PATH_MAX];
  return ::realpath(file.c_str(), path) != nullptr ? path : file;
}

}  // namespace

// `NAME FILE ARGUMENTS...`: on qemu's command line that is behind `-0`, with `--` behind the name.
std::vector<std::string> QemuInferior::words() const {
  auto line = read_file(fmt::format("/proc/{}/cmdline", pid()), kMaxCommandLine_bytes);
  std::vector<std::string> words;
  std::string_view left = line ? as_text(*line) : std::string_view();
  while (!left.empty()) {
    words.emplace_back(left.substr(0, left.find('\0')));
    left.remove_prefix(std::min(left.size(), words.back().size() + 1));
  }
  auto name = std::find(words.begin(), words.end(), "-0");
  words.erase(words.begin(), name == words.end() ? name : name + 1);
  if (words.size() > 1 && words[1] == "--") words.erase(words.begin() + 1);
  if (words.size() > 1) return words;
  words = program_;
  words.insert(words.begin(), program_[0]);
  return words;
}

std::vector<std::string> QemuInferior::executed_program() const {
  auto program = words();
  program.erase(program.begin());
  return program;
}

std::string QemuInferior::command_line() const {
  auto arguments = words();
  arguments.erase(arguments.begin() + 1);
  std::string line;
  for (const std::string& argument : arguments) line.append(argument) += '\0';
  return line;
}

std::string QemuInferior::executed_file() const {
  static constexpr std::string_view kOwn = "/proc/self/";
  const std::string file = executed_program()[0];
  if (!file.starts_with(kOwn)) return absolute(file);
  return fmt::format("/proc/{}/{}", pid(), std::string_view(file).substr(kOwn.size()));
}

}  // namespace tailtrace
