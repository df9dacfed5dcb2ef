// MonitorHistory: `monitor tailtrace instruction-history` and `items`, a thread's history for
// people and for scripts inside the debugger.
//
// The history is kept between commands, until the thread has moved.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "plugin/server/recorder.h"

namespace tailtrace {

class MonitorHistory {
 public:
  MonitorHistory(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  // Lines for the `monitor help` of it all.
  static std::string_view help();

  // The text to show; nothing when the command is none of these. A request that cannot be
  // fulfilled is answered with a text that begins with "error: ". Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

 private:
  // What was made last, and of what.
  struct Made {
    ThreadId thread;
    Position head;
    Address pc;
    std::unique_ptr<const History> history;
    std::optional<Range> shown;  // last
  };

  Result<std::string> instruction_history(std::string_view range);
  Result<std::string> items(std::string_view arguments);
  // Sets made_. False: `problem` says why there is none.
  Result<bool> make(ThreadId thread, std::string& problem);
  Result<bool> make_selected(std::string& problem);

  Below& below_;
  Recorder& recorder_;
  std::optional<Made> made_;
};

}  // namespace tailtrace
