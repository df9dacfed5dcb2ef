#include "plugin/engines/qemu/qemu_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "plugin/engines/own_files.h"
#include "plugin/engines/qemu/program_check.h"
#include "plugin/engines/qemu/program_file.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/engines/qemu/session_format.h"

extern char** environ;

namespace tailtrace {
namespace {

constexpr char kPluginName[] = "libtailtrace_qemu.so";

std::vector<std::string> our_environment() {
  std::vector<std::string> all;
  for (char** v = environ; *v != nullptr; ++v) all.push_back(*v);
  return all;
}

void put_environment(const std::vector<std::string>& variables, QemuCommand& command) {
  for (const std::string& variable : variables) {
    if (goes_by_option(variable)) {
      command.arguments.push_back("-E");
      command.arguments.push_back(variable);
    } else {
      command.environment.push_back(variable);
    }
  }
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

// What the terminal sends is for whoever has the terminal, and a signal that its parent does not
// want to hear is no less the program's.
void make_own_group(posix_spawnattr_t& attributes) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

}  // namespace

std::string stub_name(unsigned program_index) { return kStubName + std::to_string(program_index); }

Result<std::string> find_qemu(const std::string& name) {
  const char* variable = std::getenv("TAILTRACE_QEMU");
  std::string wanted = !name.empty() ? name : variable != nullptr ? variable : "qemu-x86_64";
  Result<std::string> path = find_in_path(wanted);
  if (path && ::access(path->c_str(), X_OK) == 0) return path;
  return fail(ErrorCode::kNoEngine, "cannot record with qemu",
              path ? "there is no program " + *path : wanted + " is not installed",
              "sudo apt install qemu-user", kWithoutQemu);
}

Result<std::string> find_qemu_plugin() {
  if (const char* variable = std::getenv("TAILTRACE_QEMU_PLUGIN")) {
    if (::access(variable, R_OK) == 0) return std::string(variable);
    return fail(ErrorCode::kNoEngine, "cannot record with qemu",
                fmt::format("TAILTRACE_QEMU_PLUGIN names {}, which cannot be read", variable),
                "unset TAILTRACE_QEMU_PLUGIN", kWithoutQemu);
  }
  auto found = find_own_file(kPluginName);
  if (found) return found;
  Error error = std::move(found.error());
  error.what = "cannot record with qemu";
  error.fix += ", or name the file with TAILTRACE_QEMU_PLUGIN";
  error.now = kWithoutQemu;
  return fail(std::move(error));
}

Result<QemuCommand> make_qemu_command(const QemuOptions& options, const std::string& session) {
  Result<Runnable> program = find_program(options.program);
  if (!program) return fail(std::move(program.error()));
  Result<std::string> qemu = find_qemu(options.qemu);
  if (!qemu) return fail(std::move(qemu.error()));
  Result<std::string> plugin = find_qemu_plugin();
  if (!plugin) return fail(std::move(plugin.error()));
  QemuCommand command;
  auto& arguments = command.arguments;
  arguments = {
      *qemu, "-plugin",
      fmt::format("{},session={},records={},stub={}", escape_commas(*plugin),
                  escape_commas(session), options.ring_records, options.with_stub ? "on" : "off")};
  if (options.with_stub) {
    arguments.push_back("-g");
    arguments.push_back(session + "/" + stub_name(0));
  }
  arguments.insert(arguments.end(), options.qemu_options.begin(), options.qemu_options.end());
  put_environment(options.environment ? *options.environment : our_environment(), command);
  // The program may begin in another folder than ours.
  std::string path = std::filesystem::absolute(program->path).string();
  arguments.insert(arguments.end(), {"-0", program->arguments[0], "--",
                                     options.folder.empty() ? program->path : path});
  arguments.insert(arguments.end(), program->arguments.begin() + 1, program->arguments.end());
  return command;
}

Result<int> QemuCommand::start(const QemuOptions& options, int inherited) const {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Copies far up first: one of the wanted descriptors may be another's number.
  std::vector<UniqueFd> copies;
  for (int fd : options.stdio) copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
  for (int i = 0; i < 3; ++i)
    if (copies[static_cast<std::size_t>(i)])
      ::posix_spawn_file_actions_adddup2(&actions, copies[static_cast<std::size_t>(i)].get(), i);
  // To itself: that keeps it open.
  if (inherited >= 0) ::posix_spawn_file_actions_adddup2(&actions, inherited, inherited);
  if (!options.folder.empty())
    ::posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (options.own_group) make_own_group(attributes);
  std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(system_error("cannot start " + arguments[0], error));
  return static_cast<int>(pid);
}

std::string what_qemu_says(const QemuOptions& options) {
  constexpr std::size_t kMostWords_bytes = 1 << 16;
  Result<OwnFolder> scratch = make_session_folder(options.sessions);
  if (!scratch) return scratch.error().to_line();
  QemuOptions asked = options;
  asked.with_stub = false;
  Result<QemuCommand> command = make_qemu_command(asked, scratch->path());
  if (!command) return command.error().to_line();
  // There is no program to run, so that only the plugin's loading is left.
  auto& arguments = command->arguments;
  arguments.erase(std::find(arguments.begin(), arguments.end(), "--") + 1, arguments.end());
  arguments.push_back("/dev/null");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  UniqueFd out(ends[0]), in(ends[1]), nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  asked.stdio = {nothing.get(), nothing.get(), in.get()};
  Result<int> pid = command->start(asked);
  in.reset();
  if (!pid) return pid.error().to_line();
  std::string text;
  char chunk[4096];
  for (ssize_t n;
       text.size() < kMostWords_bytes && (n = ::read(out.get(), chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(n));
  ::kill(*pid, SIGKILL);
  ::waitpid(*pid, nullptr, 0);
  // With few addresses now qemu finds too little, and now the recorder, which tells the reason in
  // its second line.
  if (auto refusal = read_file(scratch->path() + "/" + kRefusalName, kMostWords_bytes)) {
    text = as_text(*refusal);
    text.erase(0, text.find('\n') + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace tailtrace
