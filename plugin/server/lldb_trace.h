// LldbTrace: the five packets by which LLDB records and reads a trace: jLLDBTraceSupported, Start,
// Stop, GetState and GetBinaryData. LLDB knows Intel PT only, so whatever recorded, it is given
// Intel PT bytes made from our records.
//
// A thread is recorded for LLDB or for GDB, one at a time; both see the same history of it.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/server/lldb_clock.h"
#include "plugin/server/lldb_requests.h"
#include "plugin/server/recorder.h"
#include "plugin/server/serve.h"

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
    std::set<ThreadId> left_out;  // stopped one by one since
  };
  // What a thread's bytes are made of, so that they are made once for each stop.
  struct Made {
    HistoryMark end;
    std::string bytes;
    bool has_times = false;
  };

  Result<std::string> dispatch(std::string_view packet);
  std::string supported() const;
  Result<std::string> start(std::string_view json);
  Result<std::string> stop(std::string_view json);
  Result<std::string> state(std::string_view json);
  Result<std::string> data(std::string_view json);

  Result<std::string> start_process(const LldbTraceStart& start);
  Result<std::string> start_threads(const LldbTraceStart& start);
  Result<void> start_thread(ThreadId thread, const Settings& settings);
  Result<void> stop_thread(ThreadId thread);
  Result<void> meet_new_threads(const std::vector<ThreadId>& threads,
                                std::vector<std::string>& warnings);
  Result<const Made*> make(RecordedThread& thread);

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
  std::map<ThreadId, Settings> settings_;
  std::map<ThreadId, Made> made_;
};

}  // namespace tailtrace
