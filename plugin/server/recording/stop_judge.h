// StopJudge: takes note of what a stop reply says about recorded threads, and tells whether the
// debugger would have seen that stop had nobody single-stepped the program.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plugin/server/below/below.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/signal_set.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

enum class Judgement {
  kReport,
  kGoOn,            // nothing of the debugger's business
  kGoOnWithSignal,  // the signal is to be passed on without a word
};

class StopJudge {
 public:
  StopJudge(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  struct Circumstances {
    const rsp::ResumeAction* action = nullptr;  // what the debugger wants of the thread, if known
    bool stepped_by_us = false;                 // a finished step of it is none the debugger made
    bool maybe_stale = false;  // it may have finished its step before it was resumed last
  };
  // REQUIRES: the server below owes no answer.
  // Errors: kGone.
  Result<Judgement> judge(const rsp::StopReply& reply, const Circumstances& circumstances);

  // Whether it is a SIGSTOP that is nobody's business: one of ours, by which the Stepper stops a
  // thread in a handler; or one that gdbserver should have kept to itself: that of PTRACE_ATTACH,
  // which no program can send, when other threads got signals meanwhile; or by which it stopped the
  // thread, when that came to be another by an execve before it stopped. REQUIRES and errors as of
  // judge().
  Result<bool> is_nobodys(const rsp::StopReply& reply);

  // Whether the trap that the thread stands for ended a step over a system call: the system raises
  // it with a code of its own. REQUIRES and errors as of judge().
  Result<bool> stepped_over_call(ThreadId thread);

  // QPassSignals: signals that a running program gets without the debugger being told.
  void set_passed_signals(std::string_view list) { passed_ = rsp::parse_signals(list); }
  // Whether the debugger itself wants to be told of threads that come and go.
  void set_reports_threads(bool on) { reports_threads_ = on; }
  bool reports_threads() const { return reports_threads_; }

  // The debugger wants the program stopped, and the server below may not have seen it run: whatever
  // stops it next is reported. False: it has been told of a stop.
  void set_interrupted(bool on) { interrupted_ = on; }
  bool interrupted() const { return interrupted_; }
  // Whether the last stop was reported for that alone.
  bool was_interruption() const { return was_interruption_; }

 private:
  Result<Judgement> judge_alone(const rsp::StopReply& reply, const Circumstances& circumstances);
  Result<Judgement> trapped(const rsp::StopReply& reply, const rsp::ResumeAction* action,
                            bool certain);
  struct Sent {
    std::int32_t code;  // siginfo_t::si_code
    std::int32_t by;    // process, where the code says that there is one
  };
  Result<std::optional<Sent>> signal_sent(ThreadId thread);

  Below& below_;
  Recorder& recorder_;
  rsp::SignalSet passed_;
  bool reports_threads_ = false, interrupted_ = false, was_interruption_ = false;
};

}  // namespace tailtrace
