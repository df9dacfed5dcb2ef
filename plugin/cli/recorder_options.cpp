#include "plugin/cli/recorder_options.h"

#include <fmt/format.h>

#include "decoder/base/own_folder.h"
#include "plugin/cli/choice_option.h"
#include "plugin/cli/record_only.h"
#include "plugin/cli/say_recorded.h"
#include "plugin/recorder/black_box.h"
#include "plugin/recorder/triggers.h"

namespace tailtrace {

void add_recorder_options(CLI::App& app, RecorderOptions& options) {
  app.add_option("--on-crash", options.bundle, "no debugger; should it crash, its end is in this")
      ->type_name("BUNDLE");
  app.add_option("--on-signal", options.signals, "this signal ends the recording as well")
      ->type_name("SIGNAL");
  app.add_option("--on-call", options.functions,
                 "so does entering this function, FILE:LINE or MODULE+OFFSET")
      ->type_name("FUNCTION");
  app.add_option("--on-write", options.writes,
                 "so does a write to a variable, or 0xADDRESS[:BYTES]")
      ->type_name("PLACE");
  app.add_option("--on-access", options.accesses, "so does reading or writing there")
      ->type_name("PLACE");
  app.add_flag("--core", options.core, "put a core file into the bundle");
  add_choice(app, "--modules", options.modules, "copies of what it executed, or build ids only",
             {"copy", "ids"});
}

Result<FlightPlan> flight_plan(const RecorderOptions& options, const std::string& program,
                               std::FILE* err) {
  FlightPlan plan;
  auto free = free_recording_folder(program);
  if (free) plan.fallback = *free;
  if (options.bundle.empty() && !free) return fail(std::move(free.error()));
  plan.bundle = options.bundle.empty() ? plan.fallback : options.bundle;
  plan.core = options.core;
  plan.copy_modules = options.modules == "copy";
  plan.say = [err](std::string_view text) { fmt::print(err, "{}\n", text), std::fflush(err); };
  for (const std::string& name : options.signals) {
    auto signal = parse_signal(name);
    if (!signal) return fail(std::move(signal.error()));
    plan.triggers.signals.push_back(*signal);
  }
  plan.triggers.functions = options.functions;
  for (bool reads : {false, true})
    for (const std::string& text : reads ? options.accesses : options.writes) {
      if (!text.starts_with("0x")) {
        plan.triggers.names.push_back({text, reads});
        continue;
      }
      auto place = parse_watched(text, reads);
      if (!place) return fail(std::move(place.error()));
      plan.triggers.places.push_back(*place);
    }
  if (options.bundle.empty()) NewParents(plan.bundle).keep();
  if (auto ok = check_place(plan.bundle); !ok) return fail(std::move(ok.error()));
  return plan;
}

void say_end(const FlightEnd& end, std::FILE* err) {
  if (!end.bundle.empty()) say_recorded(end.bundle, err);
}

}  // namespace tailtrace
