// Monitor: `monitor tailtrace ...`, the commands that the debugger itself does not have.
//
// Scripts inside GDB and the plugin in LLDB ask the same by a packet of ours, which is answered in
// time, if only by saying that it is being worked on: neither can be interrupted while it waits for
// an answer. GDB mistakes the answer for the next one when it is interrupted behind `monitor`, and
// LLDB waits a minute for it and no longer.
//
// Threading: one thread at a time.
#pragma once

#include <future>
#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/below/server_options.h"
#include "plugin/server/lldb/lldb_face.h"
#include "plugin/server/monitor/monitor_history.h"
#include "plugin/server/recording/recorder.h"

namespace tailtrace {

class Monitor {
 public:
  Monitor(const ServeOptions& options, const LldbFace& lldb, Below& below, Recorder& recorder)
      : options_(options),
        lldb_(lldb),
        below_(below),
        recorder_(recorder),
        history_(below, recorder) {}
  ~Monitor() { abandon(); }

  // The text to show for a command; nothing when it is not ours. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

  // The same for a command without `tailtrace`; what was asked for before is forgotten. Nothing
  // when it takes longer: then `go_on` has the answer, or again nothing.
  Result<std::optional<std::string>> ask(std::string_view command);
  Result<std::optional<std::string>> go_on();

  // Nobody waits for an answer any more: what works on one ends soon.
  void abandon();

 private:
  // Waits for what works on an answer, which nobody gets.
  void come_to_rest();
  // Works on begun_.
  Result<std::optional<std::string>> begin(Part part);
  Result<std::string> answer_words(std::string_view words);

  static std::string help();
  Result<std::string> info();
  std::string save(const std::string& path);

  const ServeOptions& options_;
  const LldbFace& lldb_;
  Below& below_;
  Recorder& recorder_;
  MonitorHistory history_;
  std::optional<std::string> asked_;          // not begun yet
  std::string begun_;                         // last
  std::future<MonitorHistory::Text> answer_;  // of that
};

}  // namespace tailtrace
