// Monitor: `monitor tailtrace ...`, the commands that the debugger itself does not have.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/recorder.h"

namespace tailtrace {

class Monitor {
 public:
  Monitor(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  // The text to show for a command; nothing when it is not ours. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

 private:
  Result<std::string> info();

  Below& below_;
  Recorder& recorder_;
};

}  // namespace tailtrace
