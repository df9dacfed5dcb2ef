#include "plugin/server/qemu/qemu_inferior.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/qemu/guest_maps.h"

namespace tailtrace {
namespace {

constexpr std::string_view kStubProcess = "p01.";  // as the stub names its only process
constexpr std::size_t kMaxMaps_bytes = 1 << 28;
constexpr std::size_t kMostRead_bytes = 1024;

// In the answer to `g`.
constexpr std::size_t kPcOffset_digits = 16 * 16, kPcSize_digits = 16;

// Of `Z0,addr,kind` or `z0,addr,kind`, also of type 1.
std::optional<Address> breakpoint_address(std::string_view request) {
  bool is_one = request.size() > 3 && (request[0] == 'Z' || request[0] == 'z') &&
                (request[1] == '0' || request[1] == '1') && request[2] == ',';
  if (!is_one) return std::nullopt;
  std::string_view rest = request.substr(3);
  auto address = parse_hex(rest.substr(0, rest.find(',')));
  return address ? std::optional(Address{*address}) : std::nullopt;
}

bool is_about_watchpoint(std::string_view request) {
  return request.size() > 3 && (request[0] == 'Z' || request[0] == 'z') &&
         (request[1] == '2' || request[1] == '4') && request[2] == ',';
}

bool is_step(const rsp::ResumeAction& action) {
  return action.kind == rsp::ResumeAction::Kind::kStep ||
         action.kind == rsp::ResumeAction::Kind::kRangeStep;
}

// Whether a step over a range is to go on there.
bool is_in_range(const rsp::ResumeAction* action, Address pc) {
  return action != nullptr && action->kind == rsp::ResumeAction::Kind::kRangeStep &&
         action->in_range(pc);
}

// One thread runs while the others stand. The stub has them run nevertheless; the recorder has not
// (engines/qemu_plugin/lone_run.h).
bool is_lone(const rsp::ResumeActions& actions) {
  return actions.size() == 1 && actions[0].selector.tid > 0;
}

// What the recorder says in a stop reply of a thread that has executed nothing since it was resumed
// (engines/qemu_plugin/stub_gate.h), of one whose access to watched memory was undone (watch.h) or
// that left a block otherwise (leave_block.h),
// of one that stands behind a system call, of one that is to run, not to step: the recorder ends
// its step (call_trap.h, call_catch.h), of one whose own instruction is the trap (unheard.h), and
// of one that has not stopped, but the one that ran alone has ended (lone_run.h).
constexpr std::string_view kStands = "stands:;", kUndone = "undone:;", kCalled = "called:;",
                           kRuns = "runs:;", kTrapped = "trapped:;", kEnded = "ended:;";

// Whether it says so. Takes the word away.
bool take_word(std::string& reply, std::string_view word) {
  std::size_t at = reply.find(word);
  if (at == std::string::npos) return false;
  reply.erase(at, word.size());
  return true;
}

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

}  // namespace

Result<std::unique_ptr<QemuInferior>> QemuInferior::launch(const QemuOptions& options,
                                                           const EndSignals& signals) {
  auto process = QemuProcess::launch(options);
  if (!process) return fail(std::move(process.error()));
  std::unique_ptr<QemuInferior> inferior(new QemuInferior(std::move(*process), options, signals));
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
  doomed_.clear();
  removed_.clear();
  watchpoints_.clear();
  steps_.clear();
  known_stepped_ = {};
  is_to_run_ = false;
  stopped_ = {pid(), pid()};
  calls_.clear();
  if (auto opened = engine_.open(process_.process_folder()); !opened) return opened;
  if (auto told = engine_.set_caught(caught_); !told) return told;
  pass_signals(passed_);
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

Result<std::string> QemuInferior::ask(std::string_view request) {
  if (running_ || !stub_) return std::string(rsp::kFailed);
  if (auto address = breakpoint_address(request)) return change_breakpoint(request, *address);
  if (is_about_watchpoint(request)) return change_watchpoint(request);
  std::string own = fmt::format("p{:x}.", pid());
  auto answer = exchange(names_thread(request) ? replace_all(request, own, kStubProcess) : request);
  if (!answer) {
    if (signals_.has_come()) return answer;
    stub_.reset();  // it was killed; the next request to run tells
    return std::string(rsp::kFailed);
  }
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
      // A program that ends beside it says so; the connection tells of it too.
      if (payload[0] != 'W' && payload[0] != 'X') return payload;
      continue;
    }
    if (*frame) continue;
    std::vector<pollfd> polled = {{stub_->in(), POLLIN, 0}};
    if (auto waited = signals_.wait(polled, kPatience_ms); !waited)
      return fail(std::move(waited.error()));
    wake_stub();
    if (auto received = stub_->receive(); !received) return fail(std::move(received.error()));
  }
}

Result<std::string> QemuInferior::ask_of(ThreadId thread, std::string_view request) {
  if (selected_tid_ != thread.tid) {
    auto selected = ask("Hg" + rsp::format_thread({pid(), thread.tid}));
    if (!selected || *selected != "OK")
      return selected ? Result<std::string>(std::string(rsp::kFailed)) : selected;
    selected_tid_ = thread.tid;
  }
  return ask(request);
}

std::size_t QemuInferior::read_memory(Address address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t wanted = std::min(out.size() - done, kMostRead_bytes);
    auto digits = ask(fmt::format("m{:x},{:x}", address.value + done, wanted));
    auto bytes = digits ? from_hex(*digits) : std::nullopt;
    if (!bytes || bytes->size() != wanted) break;
    std::ranges::copy(*bytes, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += wanted;
  }
  return done;
}

Bytes QemuInferior::auxiliary_vector() {
  auto answer = ask("qXfer:auxv:read::0,fff");
  if (!answer || !answer->starts_with('l')) return {};
  const std::string vector = rsp::unescape(std::string_view(*answer).substr(1));
  return {vector.begin(), vector.end()};
}

std::optional<std::string> QemuInferior::maps_of_host(const std::string& file) {
  // A process whose first thread has ended has none as a whole.
  const auto path = fmt::format("/proc/{}/task/{}/{}", pid(), stopped_.tid, file);
  auto all = read_file(path, kMaxMaps_bytes);
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
    if (halted_by_ != 0 && action.signal == halted_by_) action.signal.reset();
    // It has no steps over ranges: they are made one by one.
    if (action.kind == rsp::ResumeAction::Kind::kRangeStep)
      action.kind = rsp::ResumeAction::Kind::kStep;
    if (action.kind == rsp::ResumeAction::Kind::kStep && action.selector.tid > 0)
      steps_[action.selector.tid] = !must_run(action);
    if (action.kind == rsp::ResumeAction::Kind::kStep && action.selector.tid == stopped_.tid)
      step_signal_ = action.signal;
    if (must_run(action)) action.kind = rsp::ResumeAction::Kind::kContinue;
    if (action.selector.pid > 0) action.selector.pid = kStubPid;
    own.push_back(action);
  }
  step_caught(actions, own);
  if (stub_ && (is_to_run_ || !is_lone(actions) || !is_step(actions[0]))) remove_doomed();
  interrupt_wanted_ = false;
  halted_by_ = 0;
  selected_tid_ = 0;
  resumed_with_ = actions;
  let_run(rsp::format_resume(own));
  if (untold_halt_ != 0) ::kill(pid(), std::exchange(untold_halt_, 0));
}

// Whether it is a step of a thread that would have its child step as well: the recorder ends it.
bool QemuInferior::must_run(const rsp::ResumeAction& action) const {
  return is_to_run_ && action.kind == rsp::ResumeAction::Kind::kStep &&
         action.selector.tid == stopped_.tid;
}

void QemuInferior::let_run(std::string_view request) {
  running_ = true;
  told_signal_ = 0;
  signal_info_.clear();
  maps_.reset();
  SteppedThreads stepped{};
  for (const auto& [tid, by_stub] : steps_)
    if (stepped.count < kMaxSteppedThreads) stepped.tids[stepped.count++] = tid;
  if (is_lone(resumed_with_)) stepped.lone_tid = resumed_with_[0].selector.tid;
  if (step_signal_) {
    stepped.tid_with_signal = stopped_.tid;
    stepped.signal = system_signal(*std::exchange(step_signal_, std::nullopt));
  }
  if (std::memcmp(&stepped, &known_stepped_, sizeof stepped) != 0 && engine_.set_stepped(stepped))
    known_stepped_ = stepped;
  // Should the stub be gone, the next look for an event finds out.
  if (stub_) (void)stub_->send(request).has_value();
}

// After a stop that is not told. It has ended the thread's own step; other threads' go on.
void QemuInferior::go_on() {
  const rsp::ResumeAction* action = rsp::action_for(resumed_with_, stopped_);
  const bool steps = action != nullptr && is_step(*action);
  if (steps || calls_.contains(stopped_.tid)) return step_stopped();
  let_run("vCont;c");
}

// The others go on as well.
void QemuInferior::deliver(std::uint8_t signal) {
  calls_.erase(stopped_.tid);
  const std::string thread = rsp::format_thread({kStubPid, stopped_.tid});
  let_run(fmt::format("vCont;C{:02x}:{};c", signal, thread));
}

// The others go on.
void QemuInferior::step_stopped() {
  steps_[stopped_.tid] = !is_to_run_;
  const std::string thread = rsp::format_thread({kStubPid, stopped_.tid});
  let_run(is_to_run_ ? "vCont;c" : fmt::format("vCont;s:{};c", thread));
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
  if (!is_lone(resumed_with_) || ::tgkill(pid(), resumed_with_[0].selector.tid, SIGINT) != 0)
    ::kill(pid(), SIGINT);
}

Result<std::optional<QemuInferior::Event>> QemuInferior::take_event() {
  if (!running_) return std::optional<Event>();
  take_halt();
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
  if (stop->thread && stop->thread->tid > 0) stopped_ = {pid(), stop->thread->tid};
  selected_tid_ = 0;  // threads that stopped at the same time have selected themselves
  bool was_to_step = steps_.erase(stopped_.tid) != 0;
  Event event;
  if (stop->signal == kProtocolSigInt && std::exchange(interrupt_sent_, false)) {
    event.was_interrupted = true;
    // Sent before it stopped last, for something else?
    if (!interrupt_wanted_) return go_on(), std::optional<Event>();
  }
  event.reply = replace_all(payload, kStubProcess, fmt::format("p{:x}.", pid()));
  take_signal_info(event.reply);
  if (take_word(event.reply, kEnded)) {
    event.reply = "N";
    return std::optional(std::move(event));
  }
  bool stands = take_word(event.reply, kStands);
  is_to_run_ = take_word(event.reply, kRuns);
  const bool has_trapped = take_word(event.reply, kTrapped);
  if (take_word(event.reply, kUndone)) return step_stopped(), std::optional<Event>();
  const rsp::ResumeAction* action = rsp::action_for(resumed_with_, stopped_);
  const bool steps = action != nullptr && is_step(*action);
  const bool is_awaited = was_to_step && (steps || calls_.contains(stopped_.tid));
  if (take_word(event.reply, kCalled) && (stands || !is_awaited))
    return go_on(), std::optional<Event>();
  if ((stop->reasons & rsp::StopReply::kSystemCall) != 0) return entered_call(event.reply);
  bool is_new = (stop->reasons & rsp::StopReply::kThreadCreated) != 0;
  bool has_accessed = (stop->reasons & rsp::StopReply::kWatch) != 0;
  if (is_passed(stop->signal) && !steps && !event.was_interrupted)
    return deliver(stop->signal), std::optional<Event>();
  // A step that was not taken.
  const bool is_trap = stop->signal == kProtocolSigTrap && !is_new && !has_accessed;
  if (is_trap && stands && (steps || calls_.contains(stopped_.tid)))
    return go_on(), std::optional<Event>();
  const std::string call = left_call();
  if (stands && was_to_step) steps_[stopped_.tid] = true;  // the stub may still have it step
  if (!is_trap) {
    const bool is_programs = stop->signal != kProtocolSigTrap && !event.was_interrupted;
    told_signal_ = is_programs ? stop->signal : 0;
    if (event.was_interrupted) tell_interrupt(event);
    return std::optional(std::move(event));
  }
  if (was_to_step && !call.empty()) {
    event.reply.insert(3, fmt::format("syscall_return:{};", call));
    return std::optional(std::move(event));
  }
  // The signal comes too late for it, and is kept from the program.
  if (steps && was_to_step && interrupt_wanted_) {
    tell_interrupt(event);
    return std::optional(std::move(event));
  }
  if (!was_to_step && breakpoints_.empty() && doomed_.empty() && removed_.empty())
    return std::optional(std::move(event));
  auto pc = pc_of_stopped();
  if (!pc) return fail(std::move(pc.error()));
  if (*pc) {
    const bool untold = !has_trapped && is_untold(**pc, was_to_step);
    const bool at_breakpoint = is_any_at(breakpoints_, **pc);
    if (untold || (was_to_step && !at_breakpoint && is_in_range(action, **pc)))
      return go_on(), std::optional<Event>();
    if (at_breakpoint) event.reply.insert(3, "swbreak:;");
  }
  return std::optional(std::move(event));
}

Result<std::optional<Address>> QemuInferior::pc_of_stopped() {
  // All of them: one alone it gives only to those that have read its description.
  auto digits = ask_of(stopped_, "g");
  if (!digits) return fail(std::move(digits.error()));
  if (digits->size() < kPcOffset_digits + kPcSize_digits) return std::optional<Address>();
  auto pc = parse_hex(std::string_view(*digits).substr(kPcOffset_digits, kPcSize_digits));
  return pc ? std::optional(Address{__builtin_bswap64(*pc)}) : std::nullopt;
}

// Whether a thread trapped at `pc` for what nobody waits for.
bool QemuInferior::is_untold(Address pc, bool was_to_step) const {
  const rsp::ResumeAction* action = rsp::action_for(resumed_with_, stopped_);
  if (action != nullptr && is_step(*action)) return false;
  // One that was not to run should stand at the breakpoint, and comes to it again.
  bool is_at_breakpoint = is_any_at(breakpoints_, pc) || is_any_at(doomed_, pc);
  if (is_at_breakpoint) return action == nullptr;
  // It had to wait while another one was stopped: its step is not wanted any more, or the
  // breakpoint is gone.
  return was_to_step || removed_.contains(pc);
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

}  // namespace tailtrace
