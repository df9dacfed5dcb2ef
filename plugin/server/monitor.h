// Monitor: `monitor tailtrace ...`, the commands that the debugger itself does not have.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/lldb_face.h"
#include "plugin/server/monitor_history.h"
#include "plugin/server/recorder.h"
#include "plugin/server/serve.h"

namespace tailtrace {

class Monitor {
 public:
  Monitor(const ServeOptions& options, const LldbFace& lldb, Below& below, Recorder& recorder)
      : options_(options),
        lldb_(lldb),
        below_(below),
        recorder_(recorder),
        history_(below, recorder) {}

  // The text to show for a command; nothing when it is not ours. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

 private:
  static std::string help();
  Result<std::string> info();
  std::string save(const std::string& path);

  const ServeOptions& options_;
  const LldbFace& lldb_;
  Below& below_;
  Recorder& recorder_;
  MonitorHistory history_;
};

}  // namespace tailtrace
