#include "plugin/cli/browser/browse.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/info.h"

namespace tailtrace {

Command open_command() {
  return {
      .name = "open",
      .summary = "Look through a recording of any kind, at a terminal; else say what it holds",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace open SESSION", "what `tailtrace run` kept"},
              {"tailtrace open perf.data", "what `perf record -e intel_pt//u` wrote"},
              {"tailtrace open FOLDER/trace.json", "what LLDB's `trace save` wrote"},
          },
      .elsewhere = {"goto", "view", "tui", "browse"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<HistoryOptions>();
        add_info_options(app, *options);
        return [options](const Invocation& invocation) {
          return can_browse(*options, invocation) ? browse(*options)
                                                  : show_info(*options, invocation);
        };
      },
      .take_program = {},
      .details =
          "At a terminal the newest instruction, its source line and the calls that were open are "
          "shown, and keys walk from there: up and down by instruction, left and right by line, u "
          "to the caller, g to a position, / back to a LOCATION, t to the next thread; ? names "
          "all of them. With --json, --strict or where the output is no terminal it is `tailtrace "
          "info`.",
  };
}

}  // namespace tailtrace
