// Monitor: `monitor tailtrace ...`, the commands that the debugger itself does not have.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/monitor_history.h"
#include "plugin/server/recorder.h"

namespace tailtrace {

class Monitor {
 public:
  Monitor(Below& below, Recorder& recorder) : recorder_(recorder), history_(below, recorder) {}

  // The text to show for a command; nothing when it is not ours. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

 private:
  static std::string help();
  Result<std::string> info();
  std::string save(const std::string& path);

  Recorder& recorder_;
  MonitorHistory history_;
};

}  // namespace tailtrace
