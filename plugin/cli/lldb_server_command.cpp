#include "plugin/cli/lldb_server_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "plugin/cli/lldb_refusal.h"
#include "plugin/cli/say_at_once.h"
#include "plugin/cli/serve_options.h"
#include "plugin/server/below/lldb_server_link.h"
#include "plugin/server/serve.h"

namespace tailtrace {
namespace {

std::string environment(const char* name, std::string otherwise = {}) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

Result<std::string> find_below() {
  return find_lldb_server(environment("TAILTRACE_LLDB_SERVER"), ::getppid(),
                          environment("PATH", "/usr/bin:/bin"));
}

bool is_gdbserver(const std::string& word) { return word == "gdbserver" || word == "g"; }

// Whatever lldb-server is asked for beside `gdbserver` is its own business.
int become_lldb_server(std::vector<std::string> args) {
  auto below = find_below();
  if (!below) {
    fmt::print(stderr, "{}\n", below.error().to_string());
    return static_cast<int>(below.error().code);
  }
  args.insert(args.begin(), *below);
  std::vector<char*> argv;
  for (std::string& word : args) argv.push_back(word.data());
  argv.push_back(nullptr);
  // Its platform mode starts what this names for each program.
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) ::setenv("LLDB_DEBUGSERVER_PATH", self.c_str(), 0);
  ::execv(argv[0], argv.data());
  fmt::print(stderr, "{}\n", system_error("cannot run " + *below).to_string());
  return static_cast<int>(ErrorCode::kSystem);
}

Result<int> connect_to(const std::string& address) {
  std::size_t colon = address.rfind(':');
  std::string host = colon == std::string::npos ? "" : address.substr(0, colon);
  std::string port = colon == std::string::npos ? address : address.substr(colon + 1);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const char* name = host.empty() ? "localhost" : host.c_str();
  if (int error = ::getaddrinfo(name, port.c_str(), &wanted, &found); error != 0)
    return fail(ErrorCode::kUsage, "cannot connect to " + address, ::gai_strerror(error));
  Result<int> connected = fail(ErrorCode::kSystem, "cannot connect to " + address);
  for (addrinfo* one = found; one != nullptr && !connected; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0)
      connected = fd.release();
    else
      connected = fail(system_error("cannot connect to " + address));
  }
  ::freeaddrinfo(found);
  return connected;
}

// `1234` and its NUL, as whoever started an lldb-server waits for it.
Result<void> tell_port(const LldbServerWords& words, const std::string& comm) {
  std::string port = comm.substr(comm.rfind(':') + 1);
  auto write_to = [&](int fd) -> Result<void> {
    if (::write(fd, port.c_str(), port.size() + 1) == static_cast<ssize_t>(port.size() + 1))
      return {};
    return fail(system_error("cannot tell the port"));
  };
  if (words.port_fd >= 0) return write_to(UniqueFd(words.port_fd).get());  // told once
  if (words.port_path.empty()) return {};
  UniqueFd pipe(::open(words.port_path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!pipe) return fail(system_error("cannot open " + words.port_path));
  return write_to(pipe.get());
}

// What LLDB has no place for on the command line.
Result<void> take_settings(ServeOptions& serve) {
  RecordingOptions recording;
  recording.engine = environment("TAILTRACE_ENGINE", "auto");
  recording.ring = environment("TAILTRACE_RING");
  recording.handover = environment("TAILTRACE_HANDOVER");
  if (!is_engine(recording.engine))
    return fail(ErrorCode::kUsage, "cannot take $TAILTRACE_ENGINE",
                fmt::format("there is no engine `{}`", recording.engine),
                "export TAILTRACE_ENGINE=auto");
  return apply(recording, serve);
}

Result<int> serve_lldb(ServeOptions options, const LldbServerWords& words) {
  if (auto taken = take_settings(options); !taken) return fail(std::move(taken.error()));
  if (options.engine == EngineChoice::kQemu) {
    // What LLDB asks for is started under qemu, and no lldb-server has a part in it.
    options.multi = true;
    auto dashes = std::ranges::find(words.passed, "--");
    if (dashes != words.passed.end()) options.program.assign(dashes + 1, words.passed.end());
  } else {
    auto below = find_below();
    if (!below) return fail(std::move(below.error()));
    options.lldb_server = *below;
    options.lldb_server_words = words.passed;
  }
  options.on_listening = [&words](const std::string& comm) { return tell_port(words, comm); };
  return serve(options);
}

// Where LLDB is, or will be. Errors: kSystem, kUsage.
Result<void> find_lldb_client(ServeOptions& serve, LldbServerWords& words) {
  serve.once = true;
  if (words.reverse && words.fd < 0) {
    auto fd = connect_to(words.address);
    if (!fd) return fail(std::move(fd.error()));
    words.fd = *fd;
  }
  if (words.fd >= 0) {
    // What stays with us tells LLDB why there is no session.
    serve.connected = ::fcntl(words.fd, F_DUPFD_CLOEXEC, 0);
    if (serve.connected < 0) return fail(system_error("cannot use the descriptor of --fd"));
    ::fcntl(words.fd, F_SETFD, FD_CLOEXEC);
    return {};
  }
  serve.comm = words.address.starts_with('*') ? "0.0.0.0" + words.address.substr(1) : words.address;
  serve.allow_remote_hosts = true;  // who names a host means it
  serve.say = [](std::string_view line) { say_at_once(stderr, line); };
  return {};
}

Result<int> run_gdbserver(const std::vector<std::string>& args) {
  auto words = parse_lldb_server_words(args);
  if (!words) return fail(std::move(words.error()));
  if (words->new_session) ::setsid();
  if (words->port_fd >= 0) ::fcntl(words->port_fd, F_SETFD, FD_CLOEXEC);
  ServeOptions options;
  if (auto found = find_lldb_client(options, *words); !found) return fail(std::move(found.error()));
  auto status = serve_lldb(std::move(options), *words);
  if (!status && words->fd >= 0) refuse_lldb(UniqueFd(words->fd), status.error());
  return status;
}

}  // namespace

int run_lldb_server(std::vector<std::string> args) {
  if (args.empty() || !is_gdbserver(args.front())) return become_lldb_server(std::move(args));
  args.erase(args.begin());
  auto status = run_gdbserver(args);
  if (status) return *status;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return static_cast<int>(status.error().code);
}

}  // namespace tailtrace
