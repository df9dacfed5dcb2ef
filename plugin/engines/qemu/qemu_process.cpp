#include "plugin/engines/qemu/qemu_process.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "decoder/base/unix_socket.h"
#include "decoder/record/ring.h"
#include "plugin/engines/qemu/guest_signal.h"
#include "plugin/engines/qemu/known_qemu.h"
#include "plugin/engines/qemu/qemu_command.h"
#include "plugin/engines/qemu/qemu_engine.h"

namespace tailtrace {
namespace {

void drain(int fd) {
  char events[4096];
  while (::read(fd, events, sizeof events) > 0) {
  }
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} killed it", WTERMSIG(status));
  return fmt::format("it ended with status {}", WEXITSTATUS(status));
}

std::string space_advice(const QemuOptions& options) {
  return kFreeSpace + std::string(options.kept_session.empty() ? ": TAILTRACE_SESSIONS=DIR" : "");
}

// What helps where qemu itself cannot start, by what it says.
std::string advice_on(const std::string& why) {
  if (why.find(std::strerror(ENOMEM)) == std::string::npos) return kTakeKnownQemu;
  rlimit addresses{};
  const bool is_limited =
      ::getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
  return is_limited ? "raise the limit of addresses (ulimit -v)" : "free some memory";
}

}  // namespace

QemuProcess::QemuProcess(QemuProcess&& other) noexcept
    : session_(std::move(other.session_)),
      pid_(std::exchange(other.pid_, 0)),
      pidfd_(std::move(other.pidfd_)),
      leash_(std::move(other.leash_)),
      inotify_(std::move(other.inotify_)),
      program_index_(other.program_index_),
      with_stub_(other.with_stub_),
      status_(other.status_) {}

QemuProcess& QemuProcess::operator=(QemuProcess&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(leash_, other.leash_);
  std::swap(inotify_, other.inotify_);
  std::swap(program_index_, other.program_index_);
  std::swap(with_stub_, other.with_stub_);
  std::swap(status_, other.status_);
  return *this;
}

QemuProcess::~QemuProcess() {
  if (pid_ == 0 || status_) return;
  ::kill(pid_, SIGKILL);
  int ignored;
  while (::waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
  }
}

Result<QemuProcess> QemuProcess::launch(const QemuOptions& options) {
  if (auto ok = check_ring_capacity(options.ring_records); !ok) return fail(std::move(ok.error()));
  Result<OwnFolder> session = options.kept_session.empty()
                                  ? make_session_folder(options.sessions)
                                  : make_session_folder_at(options.kept_session);
  if (!session) return fail(std::move(session.error()));
  QemuProcess process(std::move(*session));
  process.with_stub_ = options.with_stub;
  if (auto ok = process.spawn(options); !ok) return fail(std::move(ok.error()));
  std::string folder = fmt::format("{}.0", process.pid_);
  if (auto ok = process.wait_for(folder); !ok) {
    if (ok.error().code != ErrorCode::kGone) return fail(std::move(ok.error()));
    return fail(process.early_end(options));
  }
  if (!options.kept_session.empty()) process.session_.keep();
  return process;
}

Result<void> QemuProcess::spawn(const QemuOptions& options) {
  Result<QemuCommand> command = make_qemu_command(options, session_.path());
  if (!command) return fail(std::move(command.error()));
  inotify_ = UniqueFd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_ ||
      ::inotify_add_watch(inotify_.get(), session_.path().c_str(), IN_CREATE | IN_MOVED_TO) < 0)
    return fail(system_error("cannot watch the session folder"));
  Result<Leash> leash = Leash::make();
  if (!leash) return fail(std::move(leash.error()));
  leash_ = std::move(*leash);
  Result<int> pid = command->start(options, leash_.inherited_fd());
  if (!pid) return fail(std::move(pid.error()));
  pid_ = *pid;
  if (auto held = leash_.hold(pid_); !held) return held;
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_) return fail(system_error("cannot watch the process"));
  return {};
}

// Waits until the session has an entry of this name. Errors: kGone when the process ends first.
Result<void> QemuProcess::wait_for(const std::string& name) {
  std::string path = session_.path() + "/" + name;
  for (;;) {
    drain(inotify_.get());     // before looking: what comes later wakes us again
    auto status = try_wait();  // before looking, too: it may end as soon as the entry is there
    if (::access(path.c_str(), F_OK) == 0) return {};
    if (!status || *status)
      return fail(ErrorCode::kGone, "qemu is gone", status ? describe_status(**status) : "");
    pollfd fds[2] = {{inotify_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) return fail(system_error("cannot wait for qemu"));
  }
}

// Why the process ended before the recorder was at work.
Error QemuProcess::early_end(const QemuOptions& options) {
  Error error{ErrorCode::kNoEngine, "cannot record with qemu", {}, {}, kWithoutQemu};
  Result<Bytes> refusal = read_file(session_.path() + "/" + kRefusalName, 1 << 16);
  if (refusal && refusal->empty()) {
    error.what = "cannot record in the folder " + session_.path();
    error.why = "not even the reason could be written there: no space is left";
    error.fix = space_advice(options);
    return error;
  }
  if (!refusal) {
    error.why = what_qemu_says(options);
    if (error.why.empty() && status_) error.why = describe_status(*status_);
    error.fix = advice_on(error.why);
    return error;
  }
  std::string text(as_text(*refusal));
  std::string* parts[] = {&error.what, &error.why, &error.fix};
  std::size_t at = 0;
  for (std::string* part : parts) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    *part = text.substr(std::min(at, text.size()), end - std::min(at, text.size()));
    at = end + 1;
  }
  if (error.fix == kFreeSpace) error.fix = space_advice(options);
  return error;
}

std::string QemuProcess::process_folder() const {
  return process_folder_path(session_.path(), pid_, program_index_);
}

Result<UniqueFd> QemuProcess::connect_stub() {
  if (!with_stub_)
    return fail(ErrorCode::kUsage, "cannot connect to qemu's stub", "it was started without one");
  constexpr int kMaxTries = 1000;
  std::string name = stub_name(program_index_);
  if (auto ok = wait_for(name); !ok) return fail(std::move(ok.error()));
  // The socket has a name shortly before somebody listens.
  for (int i = 0;; ++i) {
    Result<UniqueFd> fd = connect_unix(session_.path() + "/" + name);
    if (fd || i == kMaxTries) return fd;
    if (auto status = try_wait(); !status || *status)
      return fail(ErrorCode::kGone, "qemu is gone", status ? describe_status(**status) : "");
    pollfd end{pidfd_.get(), POLLIN, 0};
    ::poll(&end, 1, 1);
  }
}

void QemuProcess::let_go() {
  leash_.let_go();
  pid_ = 0;
}

Result<bool> QemuProcess::replaced() {
  auto engine = QemuEngine::open(process_folder());
  if (!engine) return fail(std::move(engine.error()));
  auto threads = (*engine)->threads();
  if (!threads) return fail(std::move(threads.error()));
  bool is_followed = false;
  for (const auto& t : *threads) is_followed |= t.state == RingState::kFollowed;
  if (!is_followed) return false;
  auto ok = wait_for(fmt::format("{}.{}", pid_, program_index_ + 1));
  if (!ok && ok.error().code == ErrorCode::kGone) return false;
  if (!ok) return fail(std::move(ok.error()));
  ++program_index_;
  return true;
}

Result<std::optional<int>> QemuProcess::try_wait() {
  if (status_) return status_;
  int status;
  pid_t pid = ::waitpid(pid_, &status, WNOHANG);
  if (pid < 0) return fail(system_error("cannot wait for qemu"));
  if (pid != pid_) return status_;
  // A signal stands in the lowest seven bits.
  status_ = WIFSIGNALED(status) ? (status & ~0x7f) | guest_signal(WTERMSIG(status)) : status;
  keep_perf_maps(session());
  return status_;
}

Result<int> QemuProcess::wait() {
  for (;;) {
    auto status = try_wait();
    if (!status) return fail(std::move(status.error()));
    if (*status) return **status;
    pollfd end{pidfd_.get(), POLLIN, 0};
    ::poll(&end, 1, -1);
  }
}

}  // namespace tailtrace
