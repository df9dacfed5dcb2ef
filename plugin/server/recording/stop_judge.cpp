#include "plugin/server/recording/stop_judge.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "decoder/base/bytes.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/server/rsp/frame.h"

namespace tailtrace {
namespace {

using rsp::ResumeAction;
using rsp::StopReply;

// What a breakpoint may be met by, as behind a call that the debugger makes: it is told whatever
// the debugger wants passed on, as gdbserver does.
bool may_be_breakpoint(int signal) { return signal == SIGILL || signal == SIGSEGV; }

}  // namespace

Result<Judgement> StopJudge::judge(const StopReply& reply, const Circumstances& circumstances) {
  auto judgement = judge_alone(reply, circumstances);
  was_interruption_ = judgement && *judgement == Judgement::kGoOn && interrupted_;
  if (was_interruption_) return Judgement::kReport;
  return judgement;
}

Result<Judgement> StopJudge::judge_alone(const StopReply& reply,
                                         const Circumstances& circumstances) {
  ThreadId thread = reply.thread && reply.thread->is_thread() ? reply.thread->thread() : ThreadId{};
  if (reply.kind == StopReply::Kind::kThreadExited) {
    recorder_.thread_gone(thread);
    return reports_threads_ ? Judgement::kReport : Judgement::kGoOn;
  }
  if (reply.kind != StopReply::Kind::kStopped) {
    if (reply.process)
      recorder_.process_gone(*reply.process);
    else if (reply.kind != StopReply::Kind::kNothingRuns)
      recorder_.forget_all();
    return Judgement::kReport;
  }
  bool certain = true, stale = false;
  if ((reply.reasons & StopReply::kExec) != 0) {
    recorder_.executed(thread, reply.pc.value_or(Address{}));
  } else if (RecordedThread* recorded = recorder_.find(thread)) {
    stale = circumstances.maybe_stale && reply.pc == recorded->stop.pc;
    if (reply.pc) certain = recorder_.stopped_at(*recorded, *reply.pc);
    recorded->stop.faulted = is_fault(below_.system_signal(reply.signal));
  } else if (reply.pc) {
    recorder_.thread_created(thread, *reply.pc);
  }
  if ((reply.reasons & StopReply::kThreadCreated) != 0)
    return reports_threads_ ? Judgement::kReport : Judgement::kGoOn;
  auto nobodys = is_nobodys(reply);
  if (!nobodys) return fail(std::move(nobodys.error()));
  if (*nobodys) return Judgement::kGoOn;
  if (!circumstances.stepped_by_us || reply.reasons != 0) return Judgement::kReport;
  if (reply.signal == kProtocolSigTrap)
    return stale ? Judgement::kGoOn : trapped(reply, circumstances.action, certain);
  // A thread that is single-stepped stops for every signal; one that runs does not for those that
  // the debugger wants passed on.
  bool runs = circumstances.action != nullptr &&
              circumstances.action->kind == ResumeAction::Kind::kContinue;
  int signal = below_.system_signal(reply.signal);
  bool passed = (passed_.test(reply.signal) && !may_be_breakpoint(signal)) || is_of_threads(signal);
  return runs && passed ? Judgement::kGoOnWithSignal : Judgement::kReport;
}

// A finished step, as it looks.
Result<Judgement> StopJudge::trapped(const StopReply& reply, const ResumeAction* action,
                                     bool certain) {
  if (action != nullptr && action->kind == ResumeAction::Kind::kStep) return Judgement::kReport;
  if (action != nullptr && action->kind == ResumeAction::Kind::kRangeStep && reply.pc &&
      !action->in_range(*reply.pc))
    return Judgement::kReport;
  if (certain || !reply.thread || !reply.thread->is_thread()) return Judgement::kGoOn;
  auto sent = signal_sent(reply.thread->thread());
  if (!sent) return fail(std::move(sent.error()));
  // Whether it was sent by some process, instead of raised by a step.
  return *sent && (*sent)->code <= 0 ? Judgement::kReport : Judgement::kGoOn;
}

Result<bool> StopJudge::is_nobodys(const StopReply& reply) {
  if (below_.system_signal(reply.signal) != SIGSTOP || reply.reasons != 0 || !reply.thread ||
      !reply.thread->is_thread())
    return false;
  auto sent = signal_sent(reply.thread->thread());
  if (!sent) return fail(std::move(sent.error()));
  if (!*sent) return false;
  const bool by_us = (*sent)->by == ::getpid() || (*sent)->by == below_.link().process();
  return (*sent)->code == SI_KERNEL || ((*sent)->code == SI_TKILL && by_us);
}

Result<bool> StopJudge::stepped_over_call(ThreadId thread) {
  auto sent = signal_sent(thread);
  if (!sent) return fail(std::move(sent.error()));
  return *sent && (*sent)->code == TRAP_BRKPT;
}

// The signal that a thread stands for, if that is known.
Result<std::optional<StopJudge::Sent>> StopJudge::signal_sent(ThreadId thread) {
  auto answer = below_.ask_of(thread, "qXfer:siginfo:read::0,80");
  if (!answer) return fail(std::move(answer.error()));
  if (answer->empty() || (answer->front() != 'l' && answer->front() != 'm')) return std::nullopt;
  std::string info = rsp::unescape(std::string_view(*answer).substr(1));
  if (info.size() < offsetof(siginfo_t, si_pid) + sizeof(std::int32_t)) return std::nullopt;
  return Sent{load<std::int32_t>(as_bytes(info), offsetof(siginfo_t, si_code)),
              load<std::int32_t>(as_bytes(info), offsetof(siginfo_t, si_pid))};
}

}  // namespace tailtrace
