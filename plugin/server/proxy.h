// Proxy: the loop between a debugger and the server below it. Requests that concern the trace are
// answered here, requests to run go through the Stepper where an engine needs steps, and the rest
// is passed on as it is.
//
// Threading: one thread; run() returns when the debugger and the program are done with.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "plugin/server/below/below.h"
#include "plugin/server/below/end_signals.h"
#include "plugin/server/below/listener.h"
#include "plugin/server/below/server_options.h"
#include "plugin/server/below/shared_terminal.h"
#include "plugin/server/gdb/non_stop.h"
#include "plugin/server/gdb/trace_service.h"
#include "plugin/server/lldb/lldb_face.h"
#include "plugin/server/lldb/lldb_replay.h"
#include "plugin/server/lldb/lldb_server_face.h"
#include "plugin/server/lldb/lldb_trace.h"
#include "plugin/server/monitor/monitor.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/recording/stepper.h"

namespace tailtrace {

class Proxy {
 public:
  Proxy(const ServeOptions& options, Listener& listener, Below& below, Recorder& recorder,
        EndSignals& signals);

  // The exit status. Errors: kSystem.
  Result<int> run();

 private:
  // What the server below owes.
  enum class Owed {
    kNothing,
    kAnswer,     // passed on as it is
    kSelection,  // to Hg
    kStatus,     // to ?, vRun, vAttach: a stop that nobody asked the program for
    kStop,       // to a request to run
    kEnd,        // to a detach or kill
  };

  Result<void> turn();
  Result<void> wait();
  Result<void> accept();
  void debugger_is_gone();
  void server_is_gone(const Error& error);
  void await_hang_up();
  void stop_serving(int exit_status);
  bool has_program();

  // Errors of all: kGone when the server below is gone, kSystem.
  Result<bool> take_debugger_frames();
  Result<void> take_waiting_packets();
  Result<void> interrupt();
  bool stop_at_once(std::string_view request);
  Result<void> work();
  Result<bool> take_server_frames();
  Result<void> take_notifications();

  Result<void> on_packet(std::string packet);
  Result<bool> answer_here(const std::string& packet);
  Result<void> on_supported(std::string_view packet);
  Result<void> on_mode(std::string_view packet);
  Result<bool> answer_non_stop(std::string_view packet);
  Result<void> update_thread_events();
  Result<bool> answer_trace(std::string_view packet);
  Result<bool> on_monitor(std::string_view packet);
  Result<bool> on_question(std::string_view packet);
  Result<void> note_request(std::string_view packet);
  Result<void> pass_on(std::string_view packet, Owed owed);

  Result<void> on_answer(std::string_view payload);
  Result<void> on_stop_reply(std::string_view payload);
  Result<void> take_other_stop(std::string& told, rsp::StopReply& stop);
  Result<void> note_resume();
  void note_stop(const rsp::StopReply& reply);
  void note_done(std::string_view answer);

  void reply(std::string_view payload);
  void answer(std::string_view payload);
  void say(std::string_view line) const;

  const ServeOptions& options_;
  Listener& listener_;
  Below& below_;
  Recorder& recorder_;
  TraceService trace_;
  LldbTrace lldb_trace_;
  LldbReplay lldb_replay_;
  LldbFace lldb_;
  StopJudge judge_;
  LldbServerFace lldb_server_;
  Stepper stepper_;
  NonStop non_stop_;
  Monitor monitor_;
  SharedTerminal terminal_;
  EndSignals& signals_;

  std::optional<rsp::Connection> debugger_;
  bool debugger_lost_ = false;  // it could not be written to
  bool cannot_accept_ = false;  // one that waits; it is tried again after a pause
  bool extended_ = false;
  bool is_non_stop_ = false;
  bool wants_packed_ = false;                                  // whoever asked the last question
  bool has_thread_events_ = false, thread_events_on_ = false;  // in non-stop
  std::deque<std::string> waiting_packets_;  // came while the server below owed something
  bool interrupts_next_ = false;             // the next request to run
  bool asked_last_ = false;  // what the server below said with its answers is not looked at yet

  Owed owed_ = Owed::kNothing;
  bool asker_is_gone_ = false;      // that it is owed to
  std::string owed_for_;            // the packet that it is owed for
  rsp::ThreadSelector run_choice_;  // Hc
  std::string expanded_;            // scratch of on_stop_reply
  std::vector<pollfd> polled_;

  std::optional<int> exit_status_;
};

}  // namespace tailtrace
