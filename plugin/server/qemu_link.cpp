#include "plugin/server/qemu_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

bool resumes(std::string_view request) {
  for (std::string_view prefix : {"vCont;", "c", "C", "s", "S"})
    if (request.starts_with(prefix)) return true;
  return false;
}

int exit_status_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

// W or X with the process; qemu tells of an exit by itself, of a kill it cannot.
std::string end_report(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("W{:02x}", WEXITSTATUS(wait_status));
  return fmt::format("X{:02x}", WTERMSIG(wait_status));
}

std::string absolute(const std::string& file) {
  char path[PATH_MAX];
  return ::realpath(file.c_str(), path) != nullptr ? path : file;
}

}  // namespace

QemuLink::QemuLink(const ServeOptions& options, bool inferior_owns_stdio, QemuLiveEngine& engine)
    : options_(options),
      inferior_owns_stdio_(inferior_owns_stdio),
      engine_(engine),
      program_(options.program),
      replies_ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {}

QemuLink::~QemuLink() { end_program(); }

Result<std::unique_ptr<QemuLink>> QemuLink::start(const ServeOptions& options,
                                                  bool inferior_owns_stdio,
                                                  QemuLiveEngine& engine) {
  std::unique_ptr<QemuLink> link(new QemuLink(options, inferior_owns_stdio, engine));
  if (!options.program.empty())
    if (auto launched = link->launch(options.program); !launched)
      return fail(std::move(launched.error()));
  return link;
}

Result<void> QemuLink::launch(std::vector<std::string> program) {
  end_program();
  ended_.reset();
  QemuOptions qemu;
  qemu.program = program;
  qemu.ring_records = options_.ring_records;
  qemu.with_stub = true;
  qemu.kept_session = options_.keep_folder;
  qemu.qemu = options_.qemu;
  UniqueFd null;
  if (options_.program_stdio) {
    qemu.stdio = *options_.program_stdio;
  } else if (!inferior_owns_stdio_) {
    // As gdbserver has it when stdin and stdout carry the protocol.
    null = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    qemu.stdio = {null.get(), STDERR_FILENO, STDERR_FILENO};
  }
  if (!environment_.empty()) qemu.environment = environment();
  auto process = QemuProcess::launch(qemu);
  if (!process) return fail(std::move(process.error()));
  process_.emplace(std::move(*process));
  program_ = std::move(program);
  if (options_.say)
    options_.say(fmt::format("Process {} created; pid = {}", program_[0], process_->pid()));
  return connect();
}

// To the stub of the program that the process executes now.
Result<void> QemuLink::connect() {
  auto stream = process_->connect_stub();
  if (!stream) return fail(std::move(stream.error()));
  stub_ = std::make_unique<rsp::Connection>(std::move(*stream));
  return engine_.open(process_->process_folder());
}

void QemuLink::end_program() {
  engine_.close();
  process_.reset();  // before its stub is left alone: qemu would let the program go on
  stub_.reset();
  expects_stop_ = false;
}

// The program goes on by itself; its recording with it, unseen.
void QemuLink::let_go() {
  engine_.close();
  stub_.reset();
  if (process_) process_->let_go();
  process_.reset();
}

Result<void> QemuLink::send(std::string_view payload) {
  if (answer_here(payload)) return {};
  if (!stub_) {
    answer_without_program(payload);
    return {};
  }
  if (resumes(payload)) expects_stop_ = true;
  if (payload.starts_with("qSupported")) asked_supported_ = true;
  std::string request = request_for_stub(payload);
  auto sent = stub_->send(request);
  if (!sent && sent.error().code == ErrorCode::kGone) return connection_ended();
  return sent;
}

Result<void> QemuLink::send_frame(std::string_view frame) {
  // Only engines that need steps repeat frames.
  return stub_ ? stub_->send_raw(frame) : Result<void>();
}

// The stub does not listen while the program runs; the program itself stops for a signal.
Result<void> QemuLink::interrupt() {
  if (process_) ::kill(process_->pid(), SIGINT);
  return {};
}

void QemuLink::add_poll(std::vector<pollfd>& polled) const {
  polled.push_back({replies_ready_.get(), POLLIN, 0});
  if (!stub_) return;
  short events = POLLIN;
  if (stub_->wants_to_write()) events |= POLLOUT;
  polled.push_back({stub_->in(), events, 0});
}

Result<void> QemuLink::receive() {
  if (!stub_) return {};
  Result<void> done;
  if (stub_->wants_to_write()) done = stub_->flush();
  if (done) done = stub_->receive();
  if (!done && done.error().code == ErrorCode::kGone) return connection_ended();
  return done;
}

// Either the process executes another program now, or it has ended.
Result<void> QemuLink::connection_ended() {
  // What it said last is still to be read.
  while (auto frame = stub_->next()) {
    if (!*frame) break;
    if ((*frame)->kind == rsp::Frame::Kind::kPacket) reply(answer_for_debugger((*frame)->payload));
  }
  stub_.reset();
  auto replaced = process_->replaced();
  if (!replaced) return fail(std::move(replaced.error()));
  if (*replaced) return meet_next_program();
  auto status = process_->wait();
  if (!status) return fail(std::move(status.error()));
  ended_ = exit_status_of(*status);
  if (std::exchange(expects_stop_, false)) reply(end_report(*status));
  engine_.close();
  process_.reset();
  return {};
}

Result<void> QemuLink::meet_next_program() {
  if (auto connected = connect(); !connected) return connected;
  if (auto greeted = greet_stub(); !greeted) return greeted;
  std::string exec = wants_exec_ ? "exec:" + to_hex(as_bytes(executed_file())) + ";" : "";
  if (std::exchange(expects_stop_, false))
    reply(fmt::format("T05{}thread:p{:x}.{:x};", exec, process_->pid(), process_->pid()));
  return {};
}

// What qemu was told to run: behind `-0 NAME` on its command line.
std::string QemuLink::executed_file() const {
  auto line = read_file(fmt::format("/proc/{}/cmdline", process_->pid()), 1 << 22);
  if (!line) return program_[0];
  std::string_view left = as_text(*line);
  for (int behind = 0; !left.empty();) {
    std::string word(left.substr(0, left.find('\0')));
    left.remove_prefix(std::min(left.size(), word.size() + 1));
    if (behind == 2 && word != "--") return absolute(word);
    if (behind == 1 || (behind == 0 && word == "-0")) ++behind;
  }
  return program_[0];
}

Result<std::optional<rsp::Frame>> QemuLink::next() {
  while (stub_) {
    auto frame = stub_->next();
    if (!frame) return fail(std::move(frame.error()));
    if (!*frame) break;
    if (std::exchange(hides_answer_, false)) continue;
    if ((*frame)->kind != rsp::Frame::Kind::kPacket) return frame;
    current_ = answer_for_debugger((*frame)->payload);
    if (!current_.empty() && std::string_view("TSWX").find(current_[0]) != std::string_view::npos)
      expects_stop_ = false;
    return std::optional(rsp::Frame{rsp::Frame::Kind::kPacket, current_});
  }
  if (replies_.empty()) return std::optional<rsp::Frame>();
  std::uint64_t one = 0;
  (void)!::read(replies_ready_.get(), &one, sizeof one);
  current_ = std::move(replies_.front());
  replies_.pop_front();
  return std::optional(rsp::Frame{rsp::Frame::Kind::kPacket, current_});
}

void QemuLink::reply(std::string payload) {
  replies_.push_back(std::move(payload));
  std::uint64_t one = 1;
  (void)!::write(replies_ready_.get(), &one, sizeof one);
}

int QemuLink::shut_down(bool) {
  end_program();
  return ended_.value_or(0);
}

int QemuLink::exit_status() { return ended_.value_or(0); }

}  // namespace tailtrace
