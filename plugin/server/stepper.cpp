#include "plugin/server/stepper.h"

#include <algorithm>

#include "decoder/base/bytes.h"
#include "plugin/server/signals.h"

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::ResumeActions;
using rsp::StopReply;
using rsp::ThreadSelector;

// What the thread library uses between its threads (SIG32, SIG33): never the user's business.
constexpr std::uint8_t kProtocolSig32 = 77, kProtocolSig33 = 45;

ResumeActions without_signals(ResumeActions actions) {
  for (ResumeAction& action : actions) action.signal.reset();
  return actions;
}

}  // namespace

bool Stepper::goes_by_steps(ThreadId thread) const {
  return stepping_.contains(thread.pid) || in_flight_.contains(thread);
}

Result<void> Stepper::resume(std::string_view packet, ThreadSelector chosen) {
  auto actions = rsp::parse_resume(packet, chosen);
  if (!actions) return below_.link().send(packet);
  actions_ = std::move(*actions);
  stepping_.clear();
  Result<void> settled;
  recorder_.for_each([&](RecordedThread& thread) {
    const ResumeAction* action = rsp::action_for(actions_, thread.id);
    if (action == nullptr || action->kind == ResumeAction::Kind::kStop) return;
    // A step that was finished before must not be taken for the one that is asked for now.
    bool stale = action->kind != ResumeAction::Kind::kContinue && in_flight_.contains(thread.id);
    if (settled && (thread.pc_written || stale)) {
      auto stop = recorder_.settle(thread);
      if (!stop) settled = fail(std::move(stop.error()));
    }
    if (recorder_.needs_steps()) stepping_.insert(thread.id.pid);
    if (action->signal) thread.signal = system_signal(*action->signal);
  });
  if (!settled) return settled;
  if (stepping_.empty()) {
    repeated_ = without_signals(actions_);
  } else {
    actions = in_steps(actions_);
    repeated_ = without_signals(*actions);
  }
  repeat_frame_.clear();
  rsp::append_frame(repeat_frame_, rsp::format_resume(repeated_));
  if (stepping_.empty()) return below_.link().send(packet);
  if (auto restored = below_.restore_selection(); !restored) return restored;
  return below_.link().send(rsp::format_resume(*actions));
}

// The same request with steps in the place of runs, for the threads of recorded processes.
ResumeActions Stepper::in_steps(const ResumeActions& actions) const {
  ResumeActions steps;
  auto add = [&](ResumeAction action, bool as_step) {
    if (as_step) {
      action.kind = ResumeAction::Kind::kStep;
      action.range_begin = action.range_end = {};
    }
    steps.push_back(action);
  };
  for (const ResumeAction& action : actions) {
    bool runs = action.kind == ResumeAction::Kind::kContinue ||
                action.kind == ResumeAction::Kind::kRangeStep;
    if (action.selector.pid <= 0) {
      for (std::int32_t pid : stepping_) {
        ResumeAction of_process = action;
        of_process.selector.pid = pid;
        add(of_process, runs);
      }
      add(action, false);
    } else {
      add(action, runs && stepping_.contains(action.selector.pid));
    }
  }
  return steps;
}

Result<void> Stepper::go_on() { return below_.link().send_frame(repeat_frame_); }

Result<void> Stepper::go_on_with_signal(ThreadId thread, std::uint8_t signal) {
  const ResumeAction* action = rsp::action_for(repeated_, thread);
  ResumeActions once = repeated_;
  ResumeAction first = action != nullptr ? *action : ResumeAction{};
  first.selector = {thread.pid, thread.tid};
  first.signal = signal;
  once.insert(once.begin(), first);
  if (RecordedThread* recorded = recorder_.find(thread)) recorded->signal = system_signal(signal);
  return below_.link().send(rsp::format_resume(once));
}

// The program stands still and the debugger looks at it: whatever else was resumed may be one step
// further than it said.
void Stepper::note_report(ThreadId thread) {
  recorder_.for_each([&](RecordedThread& other) {
    if (other.id == thread || !stepping_.contains(other.id.pid)) return;
    const ResumeAction* action = rsp::action_for(actions_, other.id);
    if (action == nullptr || action->kind == ResumeAction::Kind::kStop) return;
    other.unsettled = true;
    in_flight_.insert(other.id);
  });
}

Result<Stepper::Verdict> Stepper::stopped(const StopReply& reply) {
  ThreadId thread = reply.thread && reply.thread->is_thread() ? reply.thread->thread() : ThreadId{};
  if (reply.kind == StopReply::Kind::kThreadExited) {
    recorder_.thread_gone(thread);
    in_flight_.erase(thread);
    if (reports_threads_) return Verdict::kReport;
    if (auto sent = go_on(); !sent) return fail(std::move(sent.error()));
    return Verdict::kGoesOn;
  }
  if (reply.kind != StopReply::Kind::kStopped) {
    if (reply.process) recorder_.process_gone(*reply.process);
    return Verdict::kReport;
  }
  bool certain = true, stale = false;
  if ((reply.reasons & StopReply::kExec) != 0) {
    recorder_.executed(thread, reply.pc.value_or(Address{}));
    std::erase_if(in_flight_, [&](ThreadId t) { return t.pid == thread.pid; });
  } else if (RecordedThread* recorded = recorder_.find(thread)) {
    stale = in_flight_.contains(thread) && reply.pc == recorded->stop.pc;
    if (reply.pc) certain = recorder_.stopped_at(*recorded, *reply.pc);
    recorded->stop.faulted = is_fault(reply.signal);
  } else if (reply.pc) {
    recorder_.thread_created(thread, *reply.pc);
  }
  bool ours = goes_by_steps(thread);
  in_flight_.erase(thread);
  Result<Verdict> verdict = Verdict::kReport;
  bool hidden = (reply.reasons & StopReply::kThreadCreated) != 0 && !reports_threads_;
  if (hidden || (stale && reply.is_plain_trap())) {
    auto sent = go_on();
    verdict = sent ? Result<Verdict>(Verdict::kGoesOn) : fail(std::move(sent.error()));
  } else if (ours && reply.is_plain_trap()) {
    verdict = trapped(thread, reply, certain);
  } else if (ours && reply.reasons == 0) {
    verdict = signalled(thread, reply);
  }
  if (verdict && *verdict == Verdict::kReport) note_report(thread);
  return verdict;
}

// A finished step, as it looks.
Result<Stepper::Verdict> Stepper::trapped(ThreadId thread, const StopReply& reply, bool certain) {
  const ResumeAction* action = rsp::action_for(actions_, thread);
  if (action != nullptr && action->kind == ResumeAction::Kind::kStep) return Verdict::kReport;
  if (action != nullptr && action->kind == ResumeAction::Kind::kRangeStep && reply.pc &&
      !action->in_range(*reply.pc))
    return Verdict::kReport;
  if (!certain) {
    auto sent = was_sent(thread);
    if (!sent) return fail(std::move(sent.error()));
    if (*sent) return Verdict::kReport;
  }
  if (auto sent = go_on(); !sent) return fail(std::move(sent.error()));
  return Verdict::kGoesOn;
}

// A thread that is single-stepped stops for every signal; one that runs does not for those that the
// debugger wants passed on.
Result<Stepper::Verdict> Stepper::signalled(ThreadId thread, const StopReply& reply) {
  const ResumeAction* action = rsp::action_for(actions_, thread);
  bool runs = action != nullptr && action->kind == ResumeAction::Kind::kContinue;
  bool passed =
      passed_[reply.signal] || reply.signal == kProtocolSig32 || reply.signal == kProtocolSig33;
  if (!runs || !passed) return Verdict::kReport;
  if (auto sent = go_on_with_signal(thread, reply.signal); !sent)
    return fail(std::move(sent.error()));
  return Verdict::kGoesOn;
}

// Whether the SIGTRAP was sent to the thread by some process, instead of raised by its step.
Result<bool> Stepper::was_sent(ThreadId) {
  static constexpr std::size_t kCodeOffset_bytes = 8;  // of si_code in siginfo_t
  auto answer = below_.ask("qXfer:siginfo:read::0,80");
  if (!answer) return fail(std::move(answer.error()));
  if (answer->empty() || (answer->front() != 'l' && answer->front() != 'm')) return false;
  std::string info = rsp::unescape(std::string_view(*answer).substr(1));
  if (info.size() < kCodeOffset_bytes + 4) return false;
  return load<std::int32_t>(as_bytes(info), kCodeOffset_bytes) <= 0;
}

// `QPassSignals:` and hexadecimal numbers between semicolons.
void Stepper::set_passed_signals(std::string_view list) {
  passed_.fill(false);
  while (!list.empty()) {
    std::size_t end = std::min(list.find(';'), list.size());
    auto signal = parse_hex(list.substr(0, end));
    if (signal && *signal < passed_.size()) passed_[*signal] = true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

}  // namespace tailtrace
