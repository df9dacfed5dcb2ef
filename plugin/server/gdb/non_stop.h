// NonStop: the debugger's threads run and stop each by itself, and stops are notified. Threads that
// are recorded go by single steps; their stops in between are kept from the debugger.
//
// Stops travel as the protocol has it on both sides: `%Stop` tells of the first, `vStopped` fetches
// the others one by one until `OK`.
//
// Threading: one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "plugin/server/below/below.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/recording/stop_judge.h"
#include "plugin/server/rsp/resume.h"

namespace tailtrace {

class NonStop {
 public:
  NonStop(Below& below, Recorder& recorder, StopJudge& judge)
      : below_(below), recorder_(recorder), judge_(judge) {}

  // Each of these wants a server below that owes no answer. Errors: kGone.

  // The debugger's vCont. The answer to it.
  Result<std::string> resume(std::string_view packet);
  // The debugger's `?`, on a new connection. The answer to it.
  Result<std::string> status();
  // The debugger's vStopped. The answer to it.
  std::string next_stop();

  // A thread that runs is recorded from now on: it is caught, and goes on by steps.
  Result<void> catch_running(ThreadId thread);
  // Takes a `Stop:` notification from below and fetches all that stands behind it.
  Result<void> on_notification(std::string_view notification);

  // Something to tell the debugger by `%Stop:`; empty when there is nothing, or it was told already
  // and has yet to fetch it.
  std::string take_announcement();

  // The debugger is gone, and with it what it was to be told.
  void forget_debugger();

 private:
  // A thread as the debugger believes it to be: running, with what it asked for.
  struct Run {
    rsp::ResumeAction action;
    bool stop_wanted = false;  // the debugger asked for a stop since
    bool catching = false;     // we did, to step it from there on
  };

  void note_resume(const rsp::ResumeActions& actions);
  Result<std::string> take_stop(const std::string& payload);
  std::string step_on(ThreadId thread, std::uint8_t signal);
  void report(std::string payload);

  Below& below_;
  Recorder& recorder_;
  StopJudge& judge_;
  std::map<ThreadId, Run> runs_;
  // What the debugger asked of threads by name, of those too that are not recorded, until they
  // stop: one may be recorded while it runs, such as in the step over a breakpoint.
  std::map<ThreadId, rsp::ResumeAction> asked_;
  std::deque<std::string> stops_;  // for the debugger; the front one may be announced already
  bool announced_ = false;
};

// Whether a thread of this machine runs, as opposed to being held by its tracer.
bool is_running(ThreadId thread);

}  // namespace tailtrace
