// LldbTrace: the five packets by which LLDB records and reads a trace: jLLDBTraceSupported, Start,
// Stop, GetState and GetBinaryData. LLDB knows Intel PT only, so whatever recorded, it is given
// Intel PT bytes made from our records.
//
// A thread is recorded for LLDB or for GDB, one at a time; both see the same history of it.
//
// Traces by processor (`--per-cpu-tracing`): each thread has a processor of its own, numbered in
// the order in which threads were met, which switches to it when its recording begins.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/server/below/server_options.h"
#include "plugin/server/lldb/lldb_clock.h"
#include "plugin/server/lldb/lldb_pauses.h"
#include "plugin/server/lldb/lldb_requests.h"
#include "plugin/server/recording/recorder.h"

namespace tailtrace {

class LldbTrace {
 public:
  LldbTrace(const ServeOptions& options, Below& below, Recorder& recorder)
      : options_(options), below_(below), recorder_(recorder) {}

  // The answer to one of the five packets; nothing for all others. REQUIRES: the server below owes
  // no answer. Errors: kGone when it is gone; all other failures become an answer.
  Result<std::optional<std::string>> answer(std::string_view packet);

  // QEnableErrorStrings: LLDB shows the text of an error to its user.
  void enable_error_texts() { has_error_texts_ = true; }

  // Threads that the program has made since its process is traced are so too. It costs a question
  // at the first time behind a stop. REQUIRES: as runs(). Errors: kGone.
  Result<void> meet_threads();

  // LLDB is told of a stop.
  void stopped();
  // LLDB lets the program run. REQUIRES: the server below owes no answer. Errors: kGone.
  Result<void> runs();

  // At a stop: the stop reply for a thread that the program has made, and that cannot be traced
  // within the limit of the process; each is told once. Where an engine neither needs steps nor
  // tells of threads it is not known in time. REQUIRES: as runs(). Errors: kGone.
  Result<std::optional<std::string>> untraceable_thread(const rsp::StopReply& stop);

 private:
  struct Settings {
    std::uint64_t trace_size_bytes = 0;
    bool times = false;
    std::optional<std::uint64_t> psb_period;
  };
  // `process trace start`
  struct ProcessTrace {
    std::int32_t pid = 0;
    Settings settings;
    std::uint64_t limit_bytes = 0;
    bool per_cpu = false;
    std::set<ThreadId> left_out;  // stopped one by one since, or beyond the limit
    std::uint64_t next_cpu = 0;
    std::uint64_t looked_at = 0;  // of the threads that the recorder has met
  };
  // What a thread's bytes are made of, so that they are made once for each stop.
  struct Made {
    HistoryMark end;
    std::string bytes;
    bool has_times = false;
    std::uint64_t oldest = 0, newest = 0;  // ticks of the clock; 0: none
  };
  struct Traced {
    Settings settings;
    std::uint64_t since = 0;  // when it was started, in ticks
    std::vector<Pause> pauses;
    std::uint64_t cpu = 0;  // of a trace by processor
    std::optional<Made> made;
    std::string switches;  // of that processor, as in the state that was told last
  };

  Result<std::string> dispatch(std::string_view packet);
  std::string supported() const;
  Result<std::string> start(std::string_view json);
  Result<std::string> stop(std::string_view json);
  Result<std::string> state(std::string_view json);
  Result<std::string> data(std::string_view json);

  Result<std::string> start_process(const LldbTraceStart& start);
  Result<void> check_process(const LldbTraceStart& start, const std::vector<ThreadId>& threads);
  Result<std::string> start_threads(const LldbTraceStart& start);
  Result<void> start_thread(ThreadId thread, const Settings& settings);
  Result<void> stop_thread(ThreadId thread);
  Result<void> stop_left_out();
  Result<void> meet_new_threads(const std::vector<ThreadId>& threads,
                                std::vector<std::string>& warnings);
  Result<std::optional<std::string>> meet_told_thread(ThreadId thread);
  std::string tell_of_no_room(ThreadId thread);
  std::uint64_t thread_room() const;
  bool has_room() const { return thread_room() != 0; }
  Result<void> limit_threads();
  void end_process_trace();
  Result<const Made*> make(RecordedThread& thread, Traced& traced);

  bool is_traced(ThreadId thread);
  std::uint64_t instructions_for(const Settings& settings) const;
  Result<std::vector<ThreadId>> threads();
  void forget_gone(const std::vector<ThreadId>& threads);
  std::string error_answer(const Error& error) const;

  const ServeOptions& options_;
  Below& below_;
  Recorder& recorder_;
  LldbClock clock_;
  bool has_error_texts_ = false;
  std::optional<ProcessTrace> process_;
  std::map<ThreadId, Traced> traced_;
  bool has_met_ = false;          // meet_threads() was called since the newest stop
  std::uint64_t stopped_at_ = 0;  // when LLDB was told of the newest stop, in ticks
};

}  // namespace tailtrace
