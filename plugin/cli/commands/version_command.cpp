#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plugin/cli/commands.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {

Command version_command() {
  return {
      .name = "version",
      .summary = "Print the version",
      .usage = "[OPTIONS]",
      .examples = {{"tailtrace version", "for people"},
                   {"tailtrace version --json | jq -r .version", "for a script"}},
      .define = [](CLI::App& app) -> RunCommand {
        std::shared_ptr<OutputOptions> output = add_output_options(app);
        return [output](const Invocation& invocation) -> Result<int> {
          if (output->json == JsonForm::kNone)
            fmt::print(invocation.out, "tailtrace {}\n", TAILTRACE_VERSION);
          else
            print_json(invocation.out, "tailtrace.version/1", {{"version", TAILTRACE_VERSION}},
                       output->json);
          return kExitDone;
        };
      },
      .take_program = {},
      .details = "",
  };
}

}  // namespace tailtrace
