#include "plugin/server/recording/stepper.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "decoder/base/bytes.h"
#include "plugin/engines/signal_masks.h"

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::ResumeActions;
using rsp::StopReply;
using rsp::ThreadSelector;

// What a thread makes alone at a time, beside others that wait for it.
constexpr std::uint32_t kTurn_steps = StepRowMemory::kMost_steps;
constexpr std::uint64_t kSysClone = 56, kSysClone3 = 435;

ResumeActions without_signals(ResumeActions actions) {
  for (ResumeAction& action : actions) action.signal.reset();
  return actions;
}

}  // namespace

bool Stepper::goes_by_steps(ThreadId thread) const {
  return stepping_.contains(thread.pid) || in_flight_.contains(thread);
}

bool Stepper::is_of_stops(std::string_view packet) {
  return packet.starts_with("QPassSignals:") || packet.starts_with("QCatchSyscalls:") ||
         packet.starts_with('Z') || packet.starts_with('z');
}

void Stepper::note_request(std::string_view packet, std::int32_t pid) {
  passed_signals_.note_request(packet);
  caught_calls_.note_request(packet, pid);
  repeat_run_.note_request(packet, pid);
}

Result<void> Stepper::resume(std::string_view packet, ThreadSelector chosen) {
  auto actions = rsp::parse_resume(packet, chosen);
  if (!actions) return below_.link().send(packet);
  actions_ = std::move(*actions);
  names_threads_ = std::ranges::all_of(
      actions_, [](const ResumeAction& action) { return action.selector.is_thread(); });
  note_row();  // asked for, where an error was the answer
  met_.clear();
  stepping_.clear();
  nothing_runs_ = false;
  Result<void> settled;
  recorder_.for_each([&](RecordedThread& thread) {
    met_.insert(thread.id);
    const ResumeAction* action = rsp::action_for(actions_, thread.id);
    if (action == nullptr || action->kind == ResumeAction::Kind::kStop) return;
    // A step that was finished before must not be taken for the one that is asked for now.
    bool stale = action->kind != ResumeAction::Kind::kContinue && in_flight_.contains(thread.id);
    if (settled && (thread.pc_written || stale)) {
      auto stop = recorder_.settle(thread);
      if (!stop) settled = fail(std::move(stop.error()));
    }
    if (recorder_.needs_steps())
      stepping_.insert(thread.id.pid);
    else
      thread.has_run();
    if (action->signal) deliver(thread, *action->signal);
  });
  if (!settled) return settled;
  if (stepping_.empty()) {
    repeated_ = without_signals(actions_);
  } else {
    actions = rsp::in_steps(actions_, stepping_);
    repeated_ = without_signals(*actions);
  }
  if (!stepping_.empty())
    if (auto noted = note_steps(); !noted) return noted;
  auto cloner = any_cloner();
  if (!cloner) return fail(std::move(cloner.error()));
  make_repeat_frame();
  if (stepping_.empty()) return below_.link().send(packet);
  if (*cloner) return clone_alone(**cloner);
  return send(*actions);
}

void Stepper::make_repeat_frame() {
  repeat_frame_.clear();
  rsp::append_frame(repeat_frame_, rsp::format_resume(repeated_));
}

// LLDB names each thread when it has a signal for one. Those that come later run as they would in
// lldb-server: somebody may wait for them.
void Stepper::let_new_threads_run() {
  if (!names_threads_) return;
  bool any = false;
  for (const auto& [id, thread] : recorder_.threads()) {
    if (!stepping_.contains(id.pid) || !met_.insert(id).second) continue;
    any = true;
    ResumeAction run;
    run.selector = {id.pid, id.tid};
    actions_.push_back(run);
    run.kind = ResumeAction::Kind::kStep;
    repeated_.push_back(run);
  }
  if (any) make_repeat_frame();
}

Result<void> Stepper::send(const ResumeActions& steps) {
  if (caught_calls_.none()) return below_.link().send(rsp::format_resume(steps));
  auto actions = caught_calls_.let_run(steps, actions_);
  if (!actions) return fail(std::move(actions.error()));
  return below_.link().send(rsp::format_resume(*actions));
}

// To stop and resume all others takes longer than the step, so threads go alone in turn, each for a
// while. One needs none of the others but where it makes a system call, or waits in a loop: when
// each had its turn, all make a step.
const RecordedThread* Stepper::next_alone() {
  if (!caught_calls_.none() || !faults_wait_for_nobody_) return nullptr;
  const auto& threads = recorder_.threads();
  for (auto next = threads.lower_bound(turn_); next != threads.end(); ++next) {
    if (std::exchange(turn_, next->first) != next->first) turn_steps_ = 0;
    if (turn_steps_ < kTurn_steps && can_go_alone(next->second)) return &next->second;
  }
  return nullptr;
}

bool Stepper::can_go_alone(const RecordedThread& thread) {
  auto is_of_it = [&](const ResumeAction& a) { return a.selector.pid == thread.id.pid; };
  if (!thread.has_stepped || thread.signal != 0 || !resumes(repeated_, thread.id) ||
      !std::ranges::all_of(repeated_, is_of_it))
    return false;
  const auto insn = recorder_.next_instruction(thread);
  return insn && insn->kind != InstructionClass::kSystemCall;
}

// Many steps for one, where only those are left out that nobody has to see first: in the vDSO a
// branch that may lead back, and where it leads.
Result<void> Stepper::step_alone(const RecordedThread& thread) {
  ++turn_steps_;
  StepRow* row = below_.link().step_row();
  const ResumeAction* action = rsp::action_for(actions_, thread.id);
  const bool in_vdso = recorder_.is_in_vdso(thread);
  const auto insn = recorder_.next_instruction(thread);
  const bool is_seen = action == nullptr || action->kind == ResumeAction::Kind::kStep ||
                       repeat_run_.is_watching() ||
                       (in_vdso && insn && RepeatRun::may_lead_back(*insn));
  if (row != nullptr && !is_seen) {
    StepRow::Request request{thread.id, thread.stop.pc, recorder_.stable_code(thread)};
    if (action->kind == ResumeAction::Kind::kRangeStep)
      request.within = {action->range_begin, action->range_end};
    request.most_steps = kTurn_steps - turn_steps_;
    request.ends_at_loops = in_vdso;
    row->ask(request);
  }
  return below_.link().send("vCont;s:" + rsp::format_thread(thread.id));
}

void Stepper::note_row() {
  StepRow* row = below_.link().step_row();
  if (row == nullptr) return;
  const auto [id, pcs] = row->take();
  RecordedThread* thread = pcs.empty() ? nullptr : recorder_.find(id);
  if (thread == nullptr) return;
  turn_steps_ += static_cast<std::uint32_t>(pcs.size());
  one_cpu_.step(id, std::nullopt, pcs.size());
  for (const std::uint64_t pc : pcs) recorder_.stopped_at(*thread, Address{pc});
}

Result<void> Stepper::repeat() {
  if (!signals_.empty()) return go_on_with_signals();
  if (const RecordedThread* thread = next_alone()) return step_alone(*thread);
  return repeat_all();
}

Result<void> Stepper::repeat_all() {
  turn_ = {};
  turn_steps_ = 0;
  return caught_calls_.none() ? below_.link().send_frame(repeat_frame_) : send(repeated_);
}

// A thread is about to make one.
Result<void> Stepper::note_step(ThreadId thread) {
  auto call = recorder_.system_call(thread);
  if (!call) return fail(std::move(call.error()));
  one_cpu_.step(thread, *call);
  if (*call == SYS_userfaultfd) faults_wait_for_nobody_ = false;
  return {};
}

Result<void> Stepper::note_steps() {
  for (const auto& [id, thread] : recorder_.threads())
    if (auto noted = note_step(id); !noted) return noted;
  return {};
}

// The same request again; `stopped` is the thread that has just told of a step. Others may have
// come to a system call without telling.
Result<void> Stepper::go_on(ThreadId stopped) {
  if (auto noted = knows_all_ ? note_steps() : note_step(stopped); !noted) return noted;
  auto runs = repeat_run_.begin(stopped, rsp::action_for(actions_, stopped));
  if (!runs || *runs) return runs ? Result<void>() : fail(std::move(runs.error()));
  if (knows_all_) {
    auto cloner = any_cloner();
    if (!cloner) return fail(std::move(cloner.error()));
    return *cloner ? clone_alone(**cloner) : repeat();
  }
  auto clones = is_about_to_clone(stopped);
  if (!clones) return fail(std::move(clones.error()));
  return *clones ? clone_alone(stopped) : repeat();
}

// One of the recorded threads that are about to make another.
Result<std::optional<ThreadId>> Stepper::any_cloner() {
  for (const auto& [id, thread] : recorder_.threads()) {
    auto clones = is_about_to_clone(id);
    if (!clones) return fail(std::move(clones.error()));
    if (*clones) return std::optional(id);
  }
  return std::optional<ThreadId>();
}

Result<void> Stepper::go_on_with_signals() {
  ResumeActions once;
  for (const auto& [id, signal] : signals_) {
    const ResumeAction* action = rsp::action_for(repeated_, id);
    ResumeAction& with_signal = once.emplace_back(action != nullptr ? *action : ResumeAction{});
    with_signal.selector = {id.pid, id.tid};
    with_signal.signal = signal;
    if (RecordedThread* recorded = recorder_.find(id)) deliver(*recorded, signal);
  }
  once.insert(once.end(), repeated_.begin(), repeated_.end());
  return send(once);
}

// lldb-server tells of one thread. Others may have stopped for signals, which are lost if they go
// on without. True: the debugger is to be told of one of them.
Result<bool> Stepper::take_signals(const StopReply& reply) {
  for (const auto& [id, signal] : rsp::signalled_threads(reply)) {
    if (!resumes(actions_, id)) continue;
    StopReply stop;
    stop.thread = ThreadSelector{id.pid, id.tid};
    stop.signal = signal;
    auto judgement = judge_.judge(stop, {rsp::action_for(actions_, id), goes_by_steps(id), false});
    if (!judgement) return fail(std::move(judgement.error()));
    other_ = id;
    if (*judgement == Judgement::kReport) return true;
    if (*judgement == Judgement::kGoOnWithSignal) signals_.push_back({id, signal});
  }
  return false;
}

// The thread is about to be resumed with that signal. lldb-server tells nothing of the trap at the
// first instruction of a handler, and steps on: a second signal stops the thread there.
void Stepper::deliver(RecordedThread& thread, std::uint8_t signal) {
  thread.signal = below_.system_signal(signal);
  if (!knows_all_ || !recorder_.needs_steps()) return;
  if (const auto masks = signal_masks(thread.id.pid); masks && masks->catches(thread.signal))
    (void)::tgkill(thread.id.pid, thread.id.tid, SIGSTOP);
}

bool Stepper::resumes(const ResumeActions& actions, ThreadId thread) const {
  const ResumeAction* action = rsp::action_for(actions, thread);
  return action != nullptr && action->kind != ResumeAction::Kind::kStop;
}

// The program stands still and the debugger looks at it: whatever else was resumed may be one step
// further than it said.
void Stepper::note_report(ThreadId thread) {
  if (knows_all_) return;
  recorder_.for_each([&](RecordedThread& other) {
    if (other.id == thread || !stepping_.contains(other.id.pid) || !resumes(actions_, other.id))
      return;
    other.unsettled = true;
    in_flight_.insert(other.id);
  });
}

Result<Stepper::Verdict> Stepper::stopped(const StopReply& stop) {
  let_new_threads_run();
  auto seen = repeat_run_.end(stop);
  if (!seen) return fail(std::move(seen.error()));
  const StopReply& reply = *seen;
  ThreadId thread = reply.thread && reply.thread->is_thread() ? reply.thread->thread() : ThreadId{};
  auto judgement = judge_.judge(reply, {rsp::action_for(actions_, thread), goes_by_steps(thread),
                                        in_flight_.contains(thread)});
  if (!judgement) return fail(std::move(judgement.error()));
  // The debugger knows of no breakpoint there, and would not stop: it is told of the next step.
  if (reply.reasons != stop.reasons && judge_.was_interruption()) judgement = Judgement::kGoOn;
  in_flight_.erase(thread);
  if (cloning_)
    if (auto ended = end_clone(reply); !ended) return fail(std::move(ended.error()));
  signals_.clear();
  // The server had been asked for a thread that is gone now, and does not survive to be asked
  // again. Where all are, as behind a SIGKILL, it tells that when it is asked for all.
  const bool was_asked_for_all =
      std::exchange(nothing_runs_, reply.kind == StopReply::Kind::kNothingRuns);
  if (nothing_runs_ && !was_asked_for_all && !stepping_.empty()) {
    if (RecordedThread* gone = recorder_.find(turn_)) gone->has_stepped = false;
    auto sent = repeat_all();
    return sent ? Result<Verdict>(Verdict::kGoesOn) : fail(std::move(sent.error()));
  }
  if (*judgement == Judgement::kGoOnWithSignal) signals_.push_back({thread, reply.signal});
  Verdict verdict = *judgement == Judgement::kReport ? Verdict::kReport : Verdict::kGoesOn;
  if (verdict == Verdict::kGoesOn) {
    auto tells = take_signals(reply);
    if (!tells) return fail(std::move(tells.error()));
    if (*tells) verdict = Verdict::kReportOther;
  }
  if (verdict != Verdict::kGoesOn) {
    one_cpu_.leave();
    note_report(thread);
    auto told = caught_calls_.told(reply);
    return told ? Result<Verdict>(verdict) : fail(std::move(told.error()));
  }
  auto sent = *judgement == Judgement::kGoOn ? go_on(thread) : go_on_with_signals();
  return sent ? Result<Verdict>(verdict) : fail(std::move(sent.error()));
}

// gdbserver stops new threads at once only while it reports their coming, and while it does so it
// does not survive their going in all-stop (it looks at the thread that is gone). So both are asked
// for just while one thread, alone, makes another.
Result<bool> Stepper::is_about_to_clone(ThreadId id) {
  RecordedThread* thread = recorder_.find(id);
  if ((!has_thread_events_ && !knows_all_) || thread == nullptr || !stepping_.contains(id.pid) ||
      !resumes(actions_, id) || thread->signal != 0)
    return false;
  auto number = recorder_.system_call(id);
  if (!number) return fail(std::move(number.error()));
  if (*number != kSysClone && *number != kSysClone3) return false;
  if (auto caught = caught_calls_.catches(*thread); !caught || *caught)
    return caught ? Result<bool>(false) : caught;
  return knows_all_ ? makes_thread(id, **number) : Result<bool>(true);
}

// Of lldb-server, at a system call that makes a thread or a process: which of them.
Result<bool> Stepper::makes_thread(ThreadId thread, std::uint64_t number) {
  static constexpr std::string_view kReadRdi = "p4";  // in lldb-server's numbers
  auto digits = below_.ask_of(thread, kReadRdi);
  if (!digits) return fail(std::move(digits.error()));
  auto value = parse_hex(std::string_view(*digits).substr(0, 16));
  if (!value) return false;
  std::uint64_t flags = __builtin_bswap64(*value);
  if (number == kSysClone3) {
    std::array<std::uint8_t, sizeof flags> bytes{};
    if (below_.read_memory(thread, Address{flags}, bytes) != bytes.size()) return false;
    flags = load<std::uint64_t>(bytes, 0);
  }
  return (flags & CLONE_THREAD) != 0;
}

Result<void> Stepper::clone_alone(ThreadId thread) {
  static constexpr std::uint64_t kSystemCall_bytes = 2;
  // lldb-server lets a new thread run: it is caught where the system call returns to.
  if (knows_all_)
    catch_at_ = fmt::format("0,{:x},1", recorder_.find(thread)->stop.pc.value + kSystemCall_bytes);
  auto on = below_.ask(knows_all_ ? "Z" + catch_at_ : "QThreadEvents:1");
  if (!on) return fail(std::move(on.error()));
  cloning_ = thread;
  recorder_.drop_ended();
  return below_.link().send("vCont;s:" + rsp::format_thread(thread));
}

Result<void> Stepper::end_clone(const StopReply& reply) {
  ThreadId parent = *std::exchange(cloning_, std::nullopt);
  if (knows_all_) {
    auto removed = below_.ask("z" + catch_at_);
    return removed ? Result<void>() : fail(std::move(removed.error()));
  }
  if (reply.kind == StopReply::Kind::kStopped && (reply.reasons & ~StopReply::kLibrary) == 0)
    if (auto met = meet_new_thread(parent); !met) return met;
  auto off = below_.ask("QThreadEvents:0");
  if (!off) return fail(std::move(off.error()));
  return {};
}

// The parent came out of the system call before the new thread was reported: its report waits.
Result<void> Stepper::meet_new_thread(ThreadId parent) {
  auto result = below_.read_register(parent, Below::Register::kRax);
  if (!result) return fail(std::move(result.error()));
  auto tid = static_cast<std::int64_t>(*result);
  if (tid <= 0 || tid > std::numeric_limits<std::int32_t>::max()) return {};
  ThreadId child{parent.pid, static_cast<std::int32_t>(tid)};
  if (recorder_.find(child) != nullptr) return {};
  auto answer = below_.ask("vCont;s:" + rsp::format_thread(child));
  if (!answer) return fail(std::move(answer.error()));
  below_.server_selected(std::nullopt);
  auto reply = rsp::parse_stop_reply(*answer);
  if (!reply || !reply->thread || !reply->thread->is_thread()) return {};
  below_.server_selected(reply->thread->thread());
  if (reply->pc) recorder_.thread_created(reply->thread->thread(), *reply->pc);
  return {};
}

}  // namespace tailtrace
