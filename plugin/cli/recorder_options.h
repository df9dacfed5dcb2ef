// What `tailtrace attach` and `tailtrace run --on-crash` share: what ends a recording, what the
// bundle has beside histories, and how it is told.
//
// Threading: values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

struct RecorderOptions {
  std::string bundle;
  std::vector<std::string> signals, functions, writes, accesses;
  bool core = false;
  std::string modules = "copy";

  bool any() const {
    return core || modules != "copy" || !signals.empty() || !functions.empty() || !writes.empty() ||
           !accesses.empty();
  }
};

// Adds --on-crash, --on-signal, --on-call, --on-write, --on-access, --core and --modules.
void add_recorder_options(CLI::App& app, RecorderOptions& options);

// What is told is said on `err`. `program` names the fallback's folder.
// Errors: kUsage; nothing can be written at the bundle's place.
Result<FlightPlan> flight_plan(const RecorderOptions& options, const std::string& program,
                               std::FILE* err);

// Says where the bundle is; nothing if there is none.
void say_end(const FlightEnd& end, std::FILE* err);

}  // namespace tailtrace
