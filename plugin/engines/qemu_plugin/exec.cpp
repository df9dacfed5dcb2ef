#include "plugin/engines/qemu_plugin/exec.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "plugin/engines/qemu/program_file.h"
#include "plugin/engines/qemu_plugin/exec_path.h"
#include "plugin/engines/qemu_plugin/guest_memory.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/session.h"
#include "plugin/engines/qemu_plugin/threads.h"

namespace tailtrace {
namespace {

using Strings = std::vector<std::string>;

// As the kernel has them (include/uapi/linux/limits.h, binfmts.h); its sum is 6 MiB at most.
constexpr std::size_t kMaxPath_bytes = 4096;
constexpr std::size_t kMaxString_bytes = 131072;
constexpr std::size_t kMaxStrings_bytes = 6 << 20;

constexpr char kSelf[] = "/proc/self/exe";

Strings g_qemu_options;  // those that hold for every program
std::string g_qemu_name;

// Options of qemu's that concern one program only, each with a value; we make our own.
bool is_for_one_program(const std::string& option) {
  return option == "-plugin" || option == "-g" || option == "-0" || option == "-E" ||
         option == "-U";
}

std::string read_command_line() {
  std::string text;
  FILE* file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return text;
  char chunk[4096];
  for (std::size_t n; (n = std::fread(chunk, 1, sizeof chunk, file)) > 0;) text.append(chunk, n);
  std::fclose(file);
  return text;
}

Strings split_at_nul(const std::string& text) {
  Strings parts;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\0', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The strings of a NULL-terminated array of pointers in guest memory.
std::optional<Strings> read_strings(std::uint64_t array) {
  Strings strings;
  std::size_t size = 0;
  for (; array != 0; array += sizeof(std::uint64_t)) {
    std::uint64_t pointer = 0;
    if (!read_guest(array, &pointer, sizeof pointer)) return std::nullopt;
    if (pointer == 0) break;
    auto text = read_guest_string(pointer, kMaxString_bytes);
    if (!text) return std::nullopt;
    size += text->size() + sizeof pointer;
    if (size > kMaxStrings_bytes) return std::nullopt;
    strings.push_back(std::move(*text));
  }
  return strings;
}

struct Target {
  std::string path;
  Strings arguments;
  Strings environment;
};

std::optional<Target> read_target(std::int64_t number, const SyscallArguments& a) {
  bool is_at = number == SYS_execveat;
  auto path = read_guest_string(a[is_at ? 1 : 0], kMaxPath_bytes);
  auto arguments = read_strings(a[is_at ? 2 : 1]);
  auto environment = read_strings(a[is_at ? 3 : 2]);
  if (!path || !arguments || !environment) return std::nullopt;
  if (is_at && path->compare(0, 1, "/") != 0 && static_cast<int>(a[0]) != AT_FDCWD) {
    auto folder = lasting_path_of(static_cast<int>(a[0]));
    if (!folder) return std::nullopt;
    if (!path->empty())
      path = *folder + "/" + *path;
    else if ((a[4] & AT_EMPTY_PATH) != 0)
      path = folder;
  } else {
    path = lasting_path(*path);
    if (!path) return std::nullopt;
  }
  if (arguments->empty()) arguments->push_back("");  // so does the kernel
  return Target{std::move(*path), std::move(*arguments), std::move(*environment)};
}

bool can_execute(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  // Under qemu it would not get the rights that it is made for.
  if ((info.st_mode & (S_ISUID | S_ISGID)) != 0) return false;
  return ::access(path.c_str(), X_OK) == 0;
}

// Not as another user, who loses root's rights by execve() if not before, nor with another root.
// Of a session that is over qemu needs nothing.
bool can_record_on() {
  if (::access(g_recorder.plugin_path.c_str(), R_OK) != 0) return false;
  struct stat session;
  if (::stat(g_recorder.options.session.c_str(), &session) != 0) return errno == ENOENT;
  return ::geteuid() == 0 || ::geteuid() == session.st_uid;
}

// Follows `#!` lines to a program that qemu can run. False: there is none.
bool resolve_scripts(Target& target) {
  for (int depth = 0; depth <= kMaxInterpreters; ++depth) {
    if (!can_execute(target.path)) return false;
    ProgramFile file = inspect_program(target.path);
    if (file.kind == ProgramFile::Kind::kElf64) return true;
    // Nor would its interpreter find it by a descriptor that closes.
    if (file.kind != ProgramFile::Kind::kScript || held_descriptor() >= 0) return false;
    Strings words = std::move(file.interpreter);
    words.push_back(target.path);
    words.insert(words.end(), target.arguments.begin() + 1, target.arguments.end());
    target.path = words[0];
    target.arguments = std::move(words);
  }
  return false;
}

Target qemu_for(Target program) {
  const RecorderOptions& options = g_recorder.options;
  Target qemu;
  qemu.path = kSelf;
  unsigned index = options.program_index + 1;
  qemu.arguments = {
      g_qemu_name, "-plugin",
      escape_commas(g_recorder.plugin_path) + ",session=" + escape_commas(options.session) +
          ",records=" + std::to_string(options.ring_records) + ",program=" + std::to_string(index) +
          ",stub=" + (options.has_stub ? "on" : "off")};
  auto& arguments = qemu.arguments;
  if (held_descriptor() >= 0) arguments.back() += ",held=" + std::to_string(held_descriptor());
  if (options.has_stub) {
    arguments.push_back("-g");
    arguments.push_back(options.session + "/" + kStubName + std::to_string(index));
  }
  arguments.insert(arguments.end(), g_qemu_options.begin(), g_qemu_options.end());
  for (std::string& variable : program.environment) {
    if (goes_by_option(variable)) arguments.push_back("-E");
    (goes_by_option(variable) ? arguments : qemu.environment).push_back(variable);
  }
  arguments.insert(arguments.end(), {"-0", program.arguments[0], "--", program.path});
  arguments.insert(arguments.end(), program.arguments.begin() + 1, program.arguments.end());
  return qemu;
}

// It sees its own name as natively, and so do those who look for it by that; threads inherit it.
void take_program(const std::string& path) {
  remember_program(path);
  ::prctl(PR_SET_NAME, path.c_str() + path.rfind('/') + 1);
}

std::vector<char*> pointers(const Strings& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

void remember_qemu_options() {
  Strings words = split_at_nul(read_command_line());
  if (words.empty()) return;
  g_qemu_name = words[0];
  Strings options;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") {
      if (i + 1 < words.size()) take_program(words[i + 1]);
      g_qemu_options = std::move(options);
      return;
    }
    if (is_for_one_program(words[i]))
      ++i;
    else
      options.push_back(words[i]);
  }
}

void follow_exec(std::int64_t number, const SyscallArguments& arguments) {
  const bool follows = g_recorder.options.follows_exec && can_record_on();
  auto target = follows ? read_target(number, arguments) : std::nullopt;
  if (target && resolve_scripts(*target)) {
    Target qemu = qemu_for(std::move(*target));
    std::vector<char*> argv = pointers(qemu.arguments), envp = pointers(qemu.environment);
    end_process(RingState::kFollowed);
    ::execve(qemu.path.c_str(), argv.data(), envp.data());
  }
  release_descriptor();
  end_process(RingState::kReplaced);
}

void exec_failed() { end_process(RingState::kRunning); }

}  // namespace tailtrace
