#include "plugin/engines/qemu/program_check.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "decoder/base/file.h"

namespace tailtrace {
namespace {

// As the kernel has them (fs/exec.c, fs/binfmt_script.c).
constexpr int kMaxInterpreters = 4;
constexpr std::size_t kMaxHead_bytes = 256;

Error cannot_run(const std::string& path, std::string why, std::string fix = {}) {
  return Error{ErrorCode::kUsage, "cannot run " + path, std::move(why), std::move(fix), {}};
}

Result<void> check_access(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return fail(cannot_run(path, std::strerror(errno), "check the name"));
  if (S_ISDIR(info.st_mode)) return fail(cannot_run(path, "it is a folder"));
  if (!S_ISREG(info.st_mode)) return fail(cannot_run(path, "it is not a regular file"));
  if (::access(path.c_str(), X_OK) != 0)
    return fail(cannot_run(path, "it is not executable", "chmod +x " + path));
  return {};
}

Result<std::string> read_head(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(cannot_run(path, std::strerror(errno)));
  std::string head(kMaxHead_bytes, '\0');
  ssize_t n = ::read(fd.get(), head.data(), head.size());
  if (n < 0) return fail(cannot_run(path, std::strerror(errno)));
  head.resize(static_cast<std::size_t>(n));
  return head;
}

Result<void> check_elf(const std::string& path, const std::string& head) {
  if (head.size() < sizeof(Elf64_Ehdr) || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0)
    return fail(cannot_run(path, "it is neither an ELF program nor a script with a #! line"));
  Elf64_Ehdr elf;
  std::memcpy(&elf, head.data(), sizeof elf);
  if (elf.e_machine == EM_386 ||
      (elf.e_machine == EM_X86_64 && elf.e_ident[EI_CLASS] != ELFCLASS64))
    return fail(cannot_run(path, "it is a 32-bit program", "use a 64-bit build of it"));
  if (elf.e_machine != EM_X86_64)
    return fail(cannot_run(
        path, fmt::format("it is for another processor (ELF machine {})", elf.e_machine)));
  if (elf.e_type != ET_EXEC && elf.e_type != ET_DYN)
    return fail(cannot_run(path, "it is an ELF file but not a program"));
  return {};
}

// "#!INTERPRETER [ONE ARGUMENT]": nothing when there is no such line.
std::vector<std::string> interpreter_of(const std::string& head) {
  if (!head.starts_with("#!")) return {};
  std::string line = head.substr(2, head.find('\n') - 2);
  constexpr char kBlanks[] = " \t";
  std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  std::size_t end = line.find_first_of(kBlanks, begin);
  std::vector<std::string> words{line.substr(begin, end - begin)};
  std::size_t argument = line.find_first_not_of(kBlanks, end);
  if (argument != std::string::npos)
    words.push_back(line.substr(argument, line.find_last_not_of(kBlanks) + 1 - argument));
  return words;
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
    return fail(ErrorCode::kUsage, "cannot run a program", "none is named");
  Result<std::string> path = find_in_path(arguments[0]);
  if (!path) return fail(std::move(path.error()));
  Runnable found{*path, arguments};
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    if (auto ok = check_access(found.path); !ok) return fail(std::move(ok.error()));
    Result<std::string> head = read_head(found.path);
    if (!head) return fail(std::move(head.error()));
    std::vector<std::string> words = interpreter_of(*head);
    if (words.empty()) {
      if (auto ok = check_elf(found.path, *head); !ok) return fail(std::move(ok.error()));
      return found;
    }
    words.push_back(found.path);
    words.insert(words.end(), found.arguments.begin() + 1, found.arguments.end());
    found = {words[0], std::move(words)};
  }
  return fail(cannot_run(arguments[0], "its interpreters need ever more interpreters"));
}

}  // namespace tailtrace
