// What is known to go wrong on a machine although nothing is refused: processors with two kinds of
// cores, kernels that hide themselves from user code, and defects of kernels by their version.
// `tailtrace doctor` shows all of it, an engine what concerns it.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "plugin/engines/machine.h"
#include "plugin/engines/perf/refusal.h"

namespace tailtrace::perf {

struct Trouble {
  std::string subject;  // one or two words: "hybrid"
  std::string what;     // what it does to a recording, one line
  std::string why;      // as measured
  std::string fix;      // may be empty: nothing need be done
  // The events that show less than they should here without a word; none: it depends on more than
  // the machine, or is told when it happens.
  std::vector<Purpose> of;

  Error to_error() const { return {ErrorCode::kSystem, what, why, fix, {}}; }
};

// Nothing for a machine without PMUs that record branches.
std::vector<Trouble> known_trouble(const Machine& machine);

// What of it concerns an event, as remarks beside its recording.
std::vector<Error> known_trouble_with(Purpose purpose, const Machine& machine);

// "6.12.0-18-amd64" is at least 6.12. A release that is no version is taken for a new one.
bool is_at_least(const std::string& release, int major, int minor);

}  // namespace tailtrace::perf
