#include "plugin/cli/commands.h"
#include "plugin/cli/info.h"

namespace tailtrace {

Command open_command() {
  return {
      .name = "open",
      .summary = "Open a recording of any kind, and show what it holds",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace open SESSION", "what `tailtrace run` kept"},
              {"tailtrace open perf.data", "what `perf record -e intel_pt//u` wrote"},
              {"tailtrace open FOLDER/trace.json", "what LLDB's `trace save` wrote"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<HistoryOptions>();
        add_info_options(app, *options);
        return [options](const Invocation& invocation) { return show_info(*options, invocation); };
      },
      .take_program = {},
      .details = "",
  };
}

}  // namespace tailtrace
