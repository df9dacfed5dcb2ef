#include "plugin/engines/qemu/program_check.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/engines/qemu/program_file.h"

namespace tailtrace {
namespace {

Error cannot_run(const std::string& path, std::string why, std::string fix) {
  return Error{ErrorCode::kUsage, "cannot run " + path, std::move(why), std::move(fix), {}};
}

Result<void> check_access(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return fail(cannot_run(path, std::strerror(errno), "check the name"));
  if (S_ISDIR(info.st_mode)) return fail(cannot_run(path, "it is a folder", "name a program"));
  if (!S_ISREG(info.st_mode))
    return fail(cannot_run(path, "it is not a regular file", "name a program"));
  if (::access(path.c_str(), X_OK) != 0)
    return fail(cannot_run(path, "it is not executable", "chmod +x " + path));
  return {};
}

Error wrong_first_line(const std::string& script, const std::string& interpreter,
                       const std::string& why) {
  return cannot_run(script, fmt::format("its #! line names {}: {}", interpreter, why),
                    interpreter.ends_with('\r')
                        ? fmt::format("the line ends as on Windows: sed -i 's/\\r$//' {}", script)
                        : "correct that line, or name the program that reads it first");
}

Error refusal(const std::string& path, const ProgramFile& file) {
  using Kind = ProgramFile::Kind;
  switch (file.kind) {
    case Kind::kUnreadable:
      return cannot_run(path, std::strerror(file.error_number), "chmod +r " + path);
    case Kind::kElf32:
      return cannot_run(path, "it is a 32-bit program", "use a 64-bit build of it");
    case Kind::kOtherMachine:
      return cannot_run(path,
                        fmt::format("it is for another processor (ELF machine {})", file.machine),
                        "use a build of it for x86-64");
    case Kind::kOtherElf:
      return cannot_run(path, "it is an ELF file but not a program", "name a program");
    case Kind::kCutShort:
      return cannot_run(path, "its end is missing: its headers tell of more than the file has",
                        "build or copy it again");
    default:
      return cannot_run(path, "it is neither an ELF program nor a script with a #! line",
                        "if it is a script, name the program that reads it first");
  }
}

}  // namespace

Result<std::string> find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string folder = folders.substr(at, end - at);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (check_access(candidate)) return candidate;
    at = end + 1;
  }
  return fail(ErrorCode::kUsage, "cannot run " + name, "no folder of PATH has such a program",
              "check the name, or give its path");
}

Result<Runnable> find_program(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].empty())
    return fail(ErrorCode::kUsage, "cannot run a program", "none is named", "name one");
  Result<std::string> path = find_in_path(arguments[0]);
  if (!path) return fail(std::move(path.error()));
  Runnable found{*path, arguments};
  std::string script;  // that names it
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    if (auto ok = check_access(found.path); !ok)
      return fail(script.empty() ? std::move(ok.error())
                                 : wrong_first_line(script, found.path, ok.error().why));
    ProgramFile file = inspect_program(found.path);
    if (file.kind == ProgramFile::Kind::kElf64) return found;
    if (file.kind != ProgramFile::Kind::kScript) return fail(refusal(found.path, file));
    script = found.path;
    std::vector<std::string> words = std::move(file.interpreter);
    words.push_back(found.path);
    words.insert(words.end(), found.arguments.begin() + 1, found.arguments.end());
    found = {words[0], std::move(words)};
  }
  return fail(cannot_run(arguments[0], "its interpreters need ever more interpreters",
                         "name the last of them first"));
}

}  // namespace tailtrace
