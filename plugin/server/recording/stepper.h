// Stepper: makes a program that the debugger lets run go by single steps below, so that the step
// engine sees every one, and tells the debugger only of what it would have seen anyway.
//
// This is for all-stop: one request to run, one stop reply to it.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/engines/step/one_cpu.h"
#include "plugin/server/below/below.h"
#include "plugin/server/recording/caught_calls.h"
#include "plugin/server/recording/passed_signals.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/recording/repeat_run.h"
#include "plugin/server/recording/stop_judge.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/signalled_threads.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class Stepper {
 public:
  Stepper(Below& below, Recorder& recorder, StopJudge& judge)
      : below_(below),
        recorder_(recorder),
        judge_(judge),
        passed_signals_(below),
        caught_calls_(below, recorder, passed_signals_),
        repeat_run_(below, recorder, passed_signals_),
        one_cpu_(below.link().tracer()) {}

  // What stops a process: system calls, signals, and places in it.
  static bool is_of_stops(std::string_view packet);
  void note_request(std::string_view packet, std::int32_t pid);

  // The debugger's request to run. Sends below what is to be done instead, or the same.
  // Errors: kGone.
  Result<void> resume(std::string_view packet, rsp::ThreadSelector chosen);

  // Call first when the stop reply to it has come: takes note of steps that nobody was told of.
  void note_row();
  // That stop reply: either the debugger is to be told of it, or of another thread that
  // stopped meanwhile, or the program already goes on.
  enum class Verdict { kReport, kReportOther, kGoesOn };
  // Errors: kGone.
  Result<Verdict> stopped(const rsp::StopReply& reply);
  // That other thread.
  ThreadId other() const { return other_; }

  // Whether the server below can stop new threads at their first instruction.
  void set_has_thread_events(bool on) { has_thread_events_ = on; }
  // Each stop reply says where all threads are, and the recorder knows it.
  void set_knows_all_threads(bool on) { knows_all_ = on; }

 private:
  bool goes_by_steps(ThreadId thread) const;
  bool resumes(const rsp::ResumeActions& actions, ThreadId thread) const;
  void make_repeat_frame();
  void let_new_threads_run();
  Result<void> send(const rsp::ResumeActions& steps);
  const RecordedThread* next_alone();
  bool can_go_alone(const RecordedThread& thread);
  Result<void> step_alone(const RecordedThread& thread);
  Result<void> repeat();
  Result<void> repeat_all();
  Result<void> note_step(ThreadId thread);
  Result<void> note_steps();
  Result<void> go_on(ThreadId stopped);
  Result<bool> take_signals(const rsp::StopReply& reply);
  Result<void> go_on_with_signals();
  void deliver(RecordedThread& thread, std::uint8_t signal);
  void note_report(ThreadId thread);

  Result<bool> is_about_to_clone(ThreadId thread);
  Result<std::optional<ThreadId>> any_cloner();
  Result<bool> makes_thread(ThreadId thread, std::uint64_t system_call);
  Result<void> clone_alone(ThreadId thread);
  Result<void> end_clone(const rsp::StopReply& reply);
  Result<void> meet_new_thread(ThreadId parent);

  Below& below_;
  Recorder& recorder_;
  StopJudge& judge_;
  PassedSignals passed_signals_;
  CaughtCalls caught_calls_;
  RepeatRun repeat_run_;
  OneCpu one_cpu_;
  rsp::ResumeActions actions_;       // what the debugger asked for, and of threads that came since
  bool names_threads_ = false;       // it asked for no more than threads that it named
  std::set<ThreadId> met_;           // since then, or that were there
  rsp::ResumeActions repeated_;      // what is sent below again and again, without signals
  std::string repeat_frame_;         // the same as a frame
  std::set<std::int32_t> stepping_;  // processes whose threads go by steps
  std::set<ThreadId> in_flight_;     // may have a finished step that was not reported yet
  std::vector<rsp::SignalledThread> signals_;  // to be passed on as the program goes on
  ThreadId other_;
  ThreadId turn_;                       // whose it is to go alone; those before it had theirs
  std::uint32_t turn_steps_ = 0;        // made in it
  bool faults_wait_for_nobody_ = true;  // no thread waits where another one touches memory
  std::optional<ThreadId> cloning_;     // goes alone through the system call that makes a thread
  std::string catch_at_;                // where the new one is caught, as in Z0 and z0
  bool nothing_runs_ = false;           // said the last stop reply
  bool has_thread_events_ = false, knows_all_ = false;
};

}  // namespace tailtrace
