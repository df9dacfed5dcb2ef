// Which engine serves: the one that was asked for, or the best that works on this machine.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "plugin/engines/step/step_engine.h"
#include "plugin/server/below/below.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

struct ChosenEngine {
  std::unique_ptr<Engine> engine;
  StepEngine* step = nullptr;  // the same, when it wants to be told of steps
};

// The best hardware that records whole histories and works here: last branch records are a short
// tail, taken when asked for by name.
std::optional<EngineChoice> best_hardware();

// Whether the hardware that is asked for by name works here; of other engines nothing is said.
// Errors: it does not, and why.
Result<void> check_engine(const ServeOptions& options);

// An engine for a program that a server below holds. Rings of the step engine are made in `folder`.
ChosenEngine choose_engine(const ServeOptions& options, const std::string& folder, Below& below);

}  // namespace tailtrace
