// Stepper: makes a program that the debugger lets run go by single steps below, so that the step
// engine sees every one, and tells the debugger only of what it would have seen anyway.
//
// This is for all-stop: one request to run, one stop reply to it.
//
// Threading: one thread at a time.
#pragma once

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "plugin/server/below.h"
#include "plugin/server/recorder.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class Stepper {
 public:
  Stepper(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  // The debugger's request to run. Sends below what is to be done instead, or the same.
  // Errors: kGone.
  Result<void> resume(std::string_view packet, rsp::ThreadSelector chosen);

  enum class Verdict { kReport, kGoesOn };
  // The stop reply to it: either the debugger is to be told, or the program already goes on.
  // Errors: kGone.
  Result<Verdict> stopped(const rsp::StopReply& reply);

  // QPassSignals: signals that a running program gets without the debugger being told.
  void set_passed_signals(std::string_view list);
  // Whether the debugger itself wants to be told of threads that come and go.
  void set_reports_threads(bool on) { reports_threads_ = on; }
  bool reports_threads() const { return reports_threads_; }

 private:
  bool goes_by_steps(ThreadId thread) const;
  rsp::ResumeActions in_steps(const rsp::ResumeActions& actions) const;
  Result<void> go_on();
  Result<void> go_on_with_signal(ThreadId thread, std::uint8_t signal);
  void note_report(ThreadId thread);
  Result<Verdict> trapped(ThreadId thread, const rsp::StopReply& reply, bool certain);
  Result<Verdict> signalled(ThreadId thread, const rsp::StopReply& reply);
  Result<bool> was_sent(ThreadId thread);

  Below& below_;
  Recorder& recorder_;
  rsp::ResumeActions actions_;       // what the debugger asked for
  rsp::ResumeActions repeated_;      // what is sent below again and again, without signals
  std::string repeat_frame_;         // the same as a frame
  std::set<std::int32_t> stepping_;  // processes whose threads go by steps
  std::set<ThreadId> in_flight_;     // may have a finished step that was not reported yet
  std::array<bool, 256> passed_{};
  bool reports_threads_ = false;
};

}  // namespace tailtrace
