#include "plugin/server/qemu/qemu_inferior.h"

#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <climits>
#include <cstdio>
#include <filesystem>

#include "decoder/base/bytes.h"
#include "plugin/server/qemu/guest_maps.h"
#include "plugin/server/signals.h"

namespace tailtrace {
namespace {

constexpr std::string_view kStubProcess = "p01.";  // as the stub names its only process
constexpr std::int32_t kStubPid = 1;
constexpr std::string_view kFailed = "E01";
constexpr std::size_t kMaxCommandLine_bytes = 1 << 22;
constexpr std::size_t kMaxMaps_bytes = 1 << 28;

// How often requests are made again when another thread's stop has changed what they mean.
constexpr int kMaxTries = 8;
// How long to look after threads that are to leave the stub, about a millisecond each.
constexpr int kMaxNudges = 200;

// Requests that name a thread.
bool names_thread(std::string_view request) {
  for (std::string_view prefix : {"H", "T", "qThreadExtraInfo,"})
    if (request.starts_with(prefix)) return true;
  return false;
}

// Answers that name one: stop replies, the list of threads.
bool answer_names_thread(std::string_view answer) {
  return answer.starts_with("T") || answer.starts_with("mp");
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0;;) {
    std::size_t found = text.find(from, at);
    if (found == std::string_view::npos) return result.append(text.substr(at));
    result.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
}

std::string absolute(const std::string& file) {
  char path[PATH_MAX];
  return ::realpath(file.c_str(), path) != nullptr ? path : file;
}

}  // namespace

Result<std::unique_ptr<QemuInferior>> QemuInferior::launch(const QemuOptions& options,
                                                           const EndSignals& signals) {
  auto process = QemuProcess::launch(options);
  if (!process) return fail(std::move(process.error()));
  std::unique_ptr<QemuInferior> inferior(
      new QemuInferior(std::move(*process), options.program, signals));
  if (auto connected = inferior->connect(true); !connected)
    return fail(std::move(connected.error()));
  return inferior;
}

QemuInferior::~QemuInferior() {
  engine_.close();
  if (!was_let_go_) {
    // Before its stub is left alone: qemu would let the program go on.
    QemuProcess ended(std::move(process_));
  }
}

// To the stub of the program that the process executes now.
Result<void> QemuInferior::connect(bool is_first) {
  auto stream = process_.connect_stub();
  if (!stream) return fail(std::move(stream.error()));
  stub_ = std::make_unique<rsp::Connection>(std::move(*stream));
  running_ = interrupt_sent_ = interrupt_wanted_ = false;
  selected_tid_ = 0;
  breakpoints_.clear();
  further_stops_.clear();
  looked_at_ = still_count_ = 0;
  stopped_ = {pid(), pid()};
  if (auto opened = engine_.open(process_.process_folder()); !opened) return opened;
  // Without this the stub speaks of threads without their process.
  auto greeted = ask("qSupported:multiprocess+");
  if (!greeted) return fail(std::move(greeted.error()));
  if (!is_first) return {};
  auto status = ask("?");
  if (!status) return fail(std::move(status.error()));
  auto stop = rsp::parse_stop_reply(*status);
  if (stop && stop->thread && stop->thread->is_thread()) stopped_ = stop->thread->thread();
  return {};
}

// What qemu was told to run: behind `-0 NAME` on its command line.
std::string QemuInferior::executed_file() const {
  auto line = read_file(fmt::format("/proc/{}/cmdline", pid()), kMaxCommandLine_bytes);
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

Result<std::string> QemuInferior::ask(std::string_view request) {
  if (running_ || !stub_) return std::string(kFailed);
  std::string own = fmt::format("p{:x}.", pid());
  auto answer = exchange(names_thread(request) ? replace_all(request, own, kStubProcess) : request);
  if (!answer) {
    if (signals_.has_come()) return answer;
    stub_.reset();  // it was killed; the next request to run tells
    return std::string(kFailed);
  }
  if (*answer == "OK" && (request[0] == 'Z' || request[0] == 'z')) note_breakpoint(request);
  return answer_names_thread(*answer) ? replace_all(*answer, kStubProcess, own) : *answer;
}

// Errors: kGone when the stub is gone or a signal ended the wait.
Result<std::string> QemuInferior::exchange(std::string_view request) {
  if (auto sent = stub_->send(request); !sent) return fail(std::move(sent.error()));
  for (;;) {
    auto frame = stub_->next();
    if (!frame) return fail(std::move(frame.error()));
    if (*frame && (*frame)->kind == rsp::Frame::Kind::kPacket) {
      std::string payload((*frame)->payload);
      if (request == "?" || !keep_further_stop(payload)) return payload;
      continue;
    }
    if (*frame) continue;
    std::vector<pollfd> polled = {{stub_->in(), POLLIN, 0}};
    if (auto waited = signals_.wait(polled); !waited) return fail(std::move(waited.error()));
    if (auto received = stub_->receive(); !received) return fail(std::move(received.error()));
  }
}

Result<std::string> QemuInferior::ask_of(ThreadId thread, std::string_view request) {
  Result<std::string> answer = std::string(kFailed);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    std::size_t before = further_stops_.size();
    if (selected_tid_ != thread.tid) {
      auto selected = ask("Hg" + rsp::format_thread({pid(), thread.tid}));
      if (!selected || *selected != "OK") return selected ? Result<std::string>("E01") : selected;
      selected_tid_ = thread.tid;
    }
    answer = ask(request);
    // A thread that stops is selected by the stub, maybe before the answer was made.
    if (!answer || further_stops_.size() == before) break;
    selected_tid_ = 0;
  }
  if (answer)
    if (auto looked = look_at_further_stops(); !looked) return fail(std::move(looked.error()));
  return answer;
}

std::optional<std::string> QemuInferior::maps(const std::string& file) {
  auto all = read_file(fmt::format("/proc/{}/{}", pid(), file), kMaxMaps_bytes);
  if (!all || running_) return std::nullopt;
  // The stub reads the program's memory only.
  auto is_guest = [this](Address address) -> Result<bool> {
    auto byte = ask(fmt::format("m{:x},1", address.value));
    if (!byte) return fail(std::move(byte.error()));
    return byte->size() == 2;
  };
  auto text = guest_part_of_maps(as_text(*all), is_guest);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// Whether a packet is one, and none that was asked for.
bool QemuInferior::keep_further_stop(std::string_view payload) {
  auto stop = rsp::parse_stop_reply(payload);
  if (!stop || (payload[0] != 'T' && payload[0] != 'W' && payload[0] != 'X')) return false;
  selected_tid_ = 0;
  // Of an end the connection tells.
  if (payload[0] != 'T' || !stop->thread || stop->thread->tid <= 0) return true;
  ++still_count_;
  further_stops_.push_back({{pid(), stop->thread->tid},
                            replace_all(payload, kStubProcess, fmt::format("p{:x}.", pid()))});
  return true;
}

// Which of them are at breakpoints, as long as those are there.
Result<void> QemuInferior::look_at_further_stops() {
  while (looked_at_ < further_stops_.size()) {
    std::size_t i = looked_at_++;
    if (!further_stops_[i].reply.starts_with("T05")) continue;
    auto at_breakpoint = is_at_breakpoint(further_stops_[i].thread);
    if (!at_breakpoint) return fail(std::move(at_breakpoint.error()));
    if (*at_breakpoint) further_stops_[i].reply.insert(3, "swbreak:;");
  }
  return {};
}

Result<std::vector<QemuInferior::FurtherStop>> QemuInferior::take_further_stops() {
  if (stub_ && !running_) {
    // Should it be gone, the next look for an event finds out.
    (void)stub_->receive().has_value();
    while (auto frame = stub_->next()) {
      if (!*frame) break;
      if ((*frame)->kind == rsp::Frame::Kind::kPacket)
        (void)keep_further_stop(std::string((*frame)->payload));
    }
  }
  if (auto looked = look_at_further_stops(); !looked) return fail(std::move(looked.error()));
  looked_at_ = 0;
  return std::exchange(further_stops_, {});
}

// Whether a thread waits in the stub: in read() of the 256 bytes that it reads at a time.
bool QemuInferior::is_any_thread_waiting() const {
  std::error_code error;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid()), error)) {
    auto line = read_file(task.path().string() + "/syscall", 4096);
    unsigned fd = 0, size_bytes = 0;
    if (!line ||
        std::sscanf(std::string(as_text(*line)).c_str(), "0 %x %*x %x", &fd, &size_bytes) != 2)
      continue;
    auto file = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", pid(), fd), error);
    if (size_bytes == 256 && file.string().starts_with("socket:")) return true;
  }
  return false;
}

// One thread took the request to run; the others that stopped find out with the next byte that they
// read. An acknowledgement that nobody waits for is such a byte.
void QemuInferior::free_waiting_threads() {
  for (int i = 0; i < kMaxNudges && stub_; ++i) {
    pollfd polled{stub_->in(), POLLIN, 0};
    if (::poll(&polled, 1, 1) != 0 || !is_any_thread_waiting()) return;
    (void)stub_->send_raw("+").has_value();
  }
}

// `Z0,addr,kind` or `z0,addr,kind`, also of type 1.
void QemuInferior::note_breakpoint(std::string_view request) {
  if (request.size() < 4 || (request[1] != '0' && request[1] != '1')) return;
  std::string_view rest = request.substr(3);
  auto address = parse_hex(rest.substr(0, rest.find(',')));
  if (!address) return;
  if (request[0] == 'Z')
    breakpoints_.insert({*address});
  else
    breakpoints_.erase({*address});
}

bool QemuInferior::is_meant(const rsp::ResumeActions& actions) const {
  for (const rsp::ResumeAction& action : actions) {
    bool ours = action.selector.pid <= 0 || action.selector.pid == pid();
    if (ours && action.kind != rsp::ResumeAction::Kind::kStop) return true;
  }
  return false;
}

void QemuInferior::resume(const rsp::ResumeActions& actions) {
  rsp::ResumeActions own;
  for (rsp::ResumeAction action : actions) {
    if (action.selector.pid > 0 && action.selector.pid != pid()) continue;
    if (action.kind == rsp::ResumeAction::Kind::kStop) continue;
    // It has no steps over ranges; a single one is always allowed instead.
    if (action.kind == rsp::ResumeAction::Kind::kRangeStep)
      action.kind = rsp::ResumeAction::Kind::kStep;
    if (action.selector.pid > 0) action.selector.pid = kStubPid;
    own.push_back(action);
  }
  running_ = true;
  interrupt_wanted_ = false;
  selected_tid_ = 0;
  resumed_with_ = rsp::format_resume(own);
  // Should it be gone, the next look for an event finds out.
  if (stub_) (void)stub_->send(resumed_with_).has_value();
  if (std::exchange(still_count_, 0) > 1) free_waiting_threads();
}

void QemuInferior::interrupt() {
  if (!running_) return;
  interrupt_wanted_ = true;
  send_wanted_interrupt();
}

// The stub does not listen to a break while the program runs. A signal while it still reads would
// end its connection, and the program with it: it must have the order to run first.
void QemuInferior::send_wanted_interrupt() {
  if (!interrupt_wanted_ || interrupt_sent_ || !stub_ || !stub_->is_acknowledged()) return;
  interrupt_sent_ = true;
  ::kill(pid(), SIGINT);
}

Result<std::optional<QemuInferior::Event>> QemuInferior::take_event() {
  if (!running_) return std::optional<Event>();
  bool gone = !stub_ || !stub_->receive();
  while (stub_) {
    auto frame = stub_->next();
    if (!frame) return fail(std::move(frame.error()));
    if (!*frame) break;
    if ((*frame)->kind != rsp::Frame::Kind::kPacket) continue;
    auto event = event_of(std::string((*frame)->payload));
    if (!event || *event) return event;
  }
  send_wanted_interrupt();
  if (!gone) return std::optional<Event>();
  auto event = connection_ended();
  if (!event) return fail(std::move(event.error()));
  return std::optional(std::move(*event));
}

Result<std::optional<QemuInferior::Event>> QemuInferior::event_of(std::string_view payload) {
  auto stop = rsp::parse_stop_reply(payload);
  // It says W before it ends its connection; how the process ended is known then.
  if (!stop || stop->kind != rsp::StopReply::Kind::kStopped) return std::optional<Event>();
  running_ = false;
  ++still_count_;
  if (stop->thread && stop->thread->tid > 0) stopped_ = {pid(), stop->thread->tid};
  selected_tid_ = stopped_.tid;  // the stub selects it too
  Event event;
  if (stop->signal == kProtocolSigInt && std::exchange(interrupt_sent_, false)) {
    event.was_interrupted = true;
    if (!interrupt_wanted_) {
      // Sent before it stopped last, for something else.
      running_ = true;
      still_count_ = 0;
      (void)stub_->send(resumed_with_).has_value();
      return std::optional<Event>();
    }
  }
  event.reply = replace_all(payload, kStubProcess, fmt::format("p{:x}.", pid()));
  if (stop->signal == kProtocolSigTrap) {
    auto at_breakpoint = is_at_breakpoint(stopped_);
    if (!at_breakpoint) return fail(std::move(at_breakpoint.error()));
    if (*at_breakpoint) event.reply.insert(3, "swbreak:;");
  }
  return std::optional(std::move(event));
}

Result<bool> QemuInferior::is_at_breakpoint(ThreadId thread) {
  if (breakpoints_.empty()) return false;
  auto digits = ask_of(thread, "p10");
  if (!digits) return fail(std::move(digits.error()));
  auto pc = digits->size() == 16 ? parse_hex(*digits) : std::nullopt;
  return pc && breakpoints_.contains({__builtin_bswap64(*pc)});
}

// Either the process executes another program now, or it has ended.
Result<QemuInferior::Event> QemuInferior::connection_ended() {
  running_ = false;
  stub_.reset();
  auto replaced = process_.replaced();
  if (!replaced) return fail(std::move(replaced.error()));
  Event event;
  if (*replaced) {
    if (auto connected = connect(false); !connected) return fail(std::move(connected.error()));
    event.reply = fmt::format("T05exec:{};thread:{};", to_hex(as_bytes(executed_file())),
                              rsp::format_thread(stopped_));
    return event;
  }
  auto status = process_.wait();
  if (!status) return fail(std::move(status.error()));
  event.has_ended = true;
  event.reply =
      WIFEXITED(*status)
          ? fmt::format("W{:02x};process:{:x}", WEXITSTATUS(*status), pid())
          : fmt::format("X{:02x};process:{:x}", protocol_signal(WTERMSIG(*status)), pid());
  return event;
}

void QemuInferior::detach() {
  if (stub_ && !running_) (void)exchange(fmt::format("D;{:x}", kStubPid)).has_value();
  process_.let_go();
  was_let_go_ = true;
}

}  // namespace tailtrace
