#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plugin/cli/commands.h"
#include "plugin/cli/doctor_report.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {

Command doctor_command() {
  return {
      .name = "doctor",
      .summary = "Say what works on this machine, what does not, and the fix",
      .usage = "[--json]",
      .examples =
          {
              {"tailtrace doctor", "what can record here"},
              {"tailtrace doctor --json | jq -r .auto", "the engine that auto takes"},
              {"tailtrace doctor >/dev/null || echo no engine", "in a script"},
          },
      .elsewhere = {"check"},
      .define = [](CLI::App& app) -> RunCommand {
        auto output = add_output_options(app);
        return [output](const Invocation& invocation) -> Result<int> {
          Machine machine = read_machine("");
          Trials trials = try_machine();
          Diagnosis diagnosis = diagnose(std::move(machine), std::move(trials));
          if (output->json != JsonForm::kNone)
            print_json(invocation.out, "tailtrace.doctor/1", doctor_json(diagnosis), output->json);
          else
            fmt::print(invocation.out, "{}",
                       doctor_text(diagnosis, output->use_color(invocation.out)));
          return auto_choice(diagnosis.engines) != nullptr ? kExitDone : kExitNoEngine;
        };
      },
      .take_program = {},
      .details =
          "Every engine is tried for real: perf events are opened and mapped, a child is "
          "stepped, qemu runs a small program with the recorder. The exit status is 0 if "
          "at least one engine works and 3 if none does.",
  };
}

}  // namespace tailtrace
