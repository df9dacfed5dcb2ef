#include "plugin/server/below/gdbserver_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "plugin/server/below/gdbserver_command.h"
#include "plugin/server/rsp/resume.h"

namespace tailtrace {
namespace {

// qRcmd "exit": gdbserver kills or lets go what it holds, and ends.
constexpr std::string_view kMonitorExit = "qRcmd,65786974";
constexpr std::size_t kMaxMessage_bytes = 1 << 16;

struct Channels {
  UniqueFd talk, its_talk, messages, its_messages;
};

Result<Channels> open_channels() {
  int pair[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(system_error("cannot make a socket pair"));
  Channels channels;
  channels.talk = UniqueFd(pair[0]);
  channels.its_talk = UniqueFd(pair[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
  channels.messages = UniqueFd(pipe[0]);
  channels.its_messages = UniqueFd(pipe[1]);
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  return channels;
}

Error no_gdbserver(const std::string& name) {
  return {ErrorCode::kNoEngine, "cannot run " + name, "there is no such program",
          "sudo apt install gdbserver", "tailtrace serve --engine=qemu needs no gdbserver"};
}

// What it says about a connection that is none of its user's business.
bool is_about_us(std::string_view line) {
  return line == "Remote debugging using stdio" || line == "stdin/stdout redirected" ||
         line.starts_with("readchar: ") ||
         line ==
             "Remote side has terminated connection.  "
             "GDBserver will reopen the connection.";
}

// The number in `Process PROGRAM created; pid = N` or `Attached; pid = N`.
pid_t told_process(std::string_view line) {
  static constexpr std::string_view kPid = "; pid = ";
  std::size_t at = line.rfind(kPid);
  if (at == std::string_view::npos) return -1;
  return std::atoi(std::string(line.substr(at + kPid.size())).c_str());
}

}  // namespace

GdbserverLink::GdbserverLink(UniqueFd talk, UniqueFd messages, NewThreads new_threads, pid_t pid,
                             Say say)
    : connection_(std::make_unique<rsp::Connection>(std::move(talk))),
      messages_(std::move(messages)),
      new_threads_(std::move(new_threads)),
      say_(std::move(say)),
      pid_(pid),
      process_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  connection_->stop_acks();
}

GdbserverLink::~GdbserverLink() {
  if (pid_ > 0) (void)shut_down(true);
}

Result<GdbserverLink::Started> GdbserverLink::start(const ServeOptions& options,
                                                    bool inferior_owns_stdio, EndSignals& signals) {
  auto channels = open_channels();
  if (!channels) return fail(std::move(channels.error()));
  auto command = GdbserverCommand::make(options, inferior_owns_stdio);
  if (!command) return fail(std::move(command.error()));
  auto new_threads = NewThreads::open();
  if (!new_threads) return fail(std::move(new_threads.error()));
  auto pid = command->start(channels->its_talk.get(), channels->its_messages.get(), *new_threads);
  if (!pid) return fail(std::move(pid.error()));
  channels->its_talk.reset();
  channels->its_messages.reset();
  new_threads->started();
  Started started;
  started.link.reset(new GdbserverLink(std::move(channels->talk), std::move(channels->messages),
                                       std::move(*new_threads), *pid, options.say));
  auto ready = started.link->await_first_answer(signals);
  if (!ready) return fail(std::move(ready.error()));
  if (*ready) return started;
  started.exit_status = started.link->exit_status();
  started.link.reset();
  if (started.exit_status == kNoProgram) return fail(no_gdbserver(options.gdbserver));
  return started;
}

// Switches acknowledgements off: gdbserver answers when it has made or attached to the program.
// False when it has exited instead.
Result<bool> GdbserverLink::await_first_answer(EndSignals& signals) {
  std::string frame;
  rsp::append_frame(frame, "QStartNoAckMode");
  if (auto sent = connection_->send_raw(frame); !sent) return false;
  for (;;) {
    std::vector<pollfd> polled = {
        {connection_->in(), POLLIN, 0}, {messages_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
    new_threads_.add_poll(polled);
    if (auto waited = signals.wait(polled); !waited) return fail(std::move(waited.error()));
    if (polled[2].revents != 0) return false;
    if (auto received = receive(); !received) {
      if (received.error().code == ErrorCode::kGone) return false;
      return fail(std::move(received.error()));
    }
    auto answer = connection_->next();
    if (!answer) return fail(std::move(answer.error()));
    if (!*answer) continue;
    // Its answer is the last packet that is acknowledged.
    if (auto sent = connection_->send_raw("+"); !sent) return fail(std::move(sent.error()));
    read_messages();
    return true;
  }
}

Result<void> GdbserverLink::send(std::string_view payload) {
  // It runs programs through a shell in any case: that is how they get their descriptors. The
  // words of a command line arrive the same with and without.
  if (payload.starts_with("QStartupWithShell:")) {
    own_answers_.emplace_back("OK");
    return {};
  }
  runs_ |= rsp::is_resume(payload);
  const std::string_view point = payload.substr(0, payload.find(';'));
  if (point.starts_with('Z')) points_.emplace(point.substr(1));
  if (point.starts_with('z')) points_.erase(std::string(point.substr(1)));
  return connection_->send(payload);
}

Result<void> GdbserverLink::send_frame(std::string_view frame) {
  runs_ |= frame.starts_with('$') && rsp::is_resume(frame.substr(1));
  return connection_->send_raw(frame);
}

// gdbserver interrupts the process group of that number, which a program that was attached to need
// not have.
Result<void> GdbserverLink::interrupt() {
  if (program_ > 0 && ::getpgid(program_) != program_ && ::kill(program_, SIGINT) == 0) return {};
  return connection_->send_raw("\x03");
}

void GdbserverLink::add_poll(std::vector<pollfd>& polled) const {
  short events = POLLIN;
  if (connection_->wants_to_write()) events |= POLLOUT;
  polled.push_back({connection_->in(), events, 0});
  if (messages_) polled.push_back({messages_.get(), POLLIN, 0});
  new_threads_.add_poll(polled);
}

Result<void> GdbserverLink::receive() {
  new_threads_.receive();
  if (connection_->wants_to_write())
    if (auto flushed = connection_->flush(); !flushed) return flushed;
  auto received = connection_->receive();
  read_messages();
  return received;
}

Result<std::optional<rsp::Frame>> GdbserverLink::next() {
  if (own_answers_.empty()) {
    auto frame = connection_->next();
    if (runs_ && frame && *frame && (*frame)->kind == rsp::Frame::Kind::kPacket)
      note_answer((*frame)->payload);
    return frame;
  }
  handed_out_ = std::move(own_answers_.front());
  own_answers_.pop_front();
  return std::optional(rsp::Frame{rsp::Frame::Kind::kPacket, handed_out_});
}

// Of a request to run: a stop, or what the program says meanwhile; in non-stop that it runs.
void GdbserverLink::note_answer(std::string_view payload) {
  runs_ = payload.starts_with('O') && payload != "OK";
  is_interrupted_ = payload.starts_with("T02");
}

void GdbserverLink::read_messages() {
  char bytes[4096];
  ssize_t n;
  while (messages_ && (n = ::read(messages_.get(), bytes, sizeof bytes)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    message_.append(bytes, static_cast<std::size_t>(n));
    std::size_t begin = 0, end;
    while ((end = message_.find('\n', begin)) != std::string::npos) {
      take_message(std::string_view(message_).substr(begin, end - begin));
      begin = end + 1;
    }
    message_.erase(0, begin);
    if (message_.size() > kMaxMessage_bytes) message_.clear();
  }
  if (!messages_) return;
  if (!message_.empty()) take_message(message_);
  message_.clear();
  messages_.reset();
}

void GdbserverLink::take_message(std::string_view line) {
  if (is_about_us(line)) return;
  const bool made = line.starts_with("Process ");
  if (pid_t told = told_process(line); told > 0 && (made || line.starts_with("Attached"))) {
    program_ = told;
    if (made) terminal_.lend_to(told);
  }
  if (say_) say_(line);
}

int GdbserverLink::exit_status() {
  int status = 0;
  if (pid_ <= 0) return 0;
  // Where no more than the line to it is broken, it has to be told.
  if (connection_) ::shutdown(connection_->in(), SHUT_RDWR);
  if (!exits_within(kServerPatience_ms)) ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  read_messages();
  terminal_.end();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Reads on meanwhile: a server whose answers nobody takes does not get to its end.
bool GdbserverLink::exits_within(int timeout_ms) {
  new_threads_.close();
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd polled[] = {{process_.get(), POLLIN, 0}, {connection_->in(), POLLIN, 0}};
    if (left.count() <= 0 || ::poll(polled, 2, static_cast<int>(left.count())) == 0) return false;
    if (polled[0].revents != 0) return true;
    read_messages();
    if (!receive()) return ::poll(polled, 1, static_cast<int>(left.count())) > 0;
    while (next().value_or(std::nullopt)) {
    }
  }
}

// The next packet; nothing when it has not said one in time.
std::optional<std::string> GdbserverLink::says_within(int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    auto frame = next();
    if (!frame) return std::nullopt;
    if (*frame && (*frame)->kind == rsp::Frame::Kind::kPacket)
      return std::string((*frame)->payload);
    if (*frame) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd polled[] = {{process_.get(), POLLIN, 0}, {connection_->in(), POLLIN, 0}};
    if (left.count() <= 0 || ::poll(polled, 2, static_cast<int>(left.count())) == 0) return {};
    if (polled[0].revents != 0 || !receive()) return std::nullopt;
  }
}

bool GdbserverLink::stands_within(int timeout_ms) {
  while (runs_ && says_within(timeout_ms)) {
  }
  return !runs_;
}

// An answer to the debugger, who is gone, may come first, so what is asked is what nobody mistakes.
bool GdbserverLink::holds_program() {
  if (!send("qfThreadInfo") || !send("vCont?")) return false;
  while (auto said = says_within(kServerPatience_ms))
    if (said->starts_with('m') || said->starts_with("vCont")) return said->starts_with('m');
  return false;
}

// It hears nothing else while the program runs. An interrupt that came beside other stops, as of
// steps of several threads, would be the program's when that is let go of: it is fetched.
void GdbserverLink::stop_program() {
  constexpr int kMostStops = 100;
  if (!runs_) return;
  (void)interrupt();
  for (int i = 0; i < kMostStops && stands_within(kServerPatience_ms) && !is_interrupted_; ++i)
    if (!send("vCont;c")) break;
}

int GdbserverLink::shut_down(bool running) {
  if (pid_ <= 0) return 0;
  if (running) stop_program();
  // gdbserver lets go of the program with traps in it; but without one, or where none is selected
  // as the last one has ended, it does not survive to be told of them.
  if (!points_.empty() && (runs_ || holds_program())) {
    (void)send("Hg0");
    for (const std::string& point : std::exchange(points_, {})) (void)send("z" + point);
  }
  (void)send(kMonitorExit);
  if (!exits_within(kServerPatience_ms)) {
    (void)interrupt();  // the program waits in the kernel: this gets it out
    if (!exits_within(kServerPatience_ms)) ::kill(pid_, SIGKILL);
  }
  return exit_status();
}

}  // namespace tailtrace
