// What `tailtrace doctor` says, as text and as JSON.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "plugin/engines/machine.h"
#include "plugin/provider/trials.h"
#include "plugin/provider/verdict.h"

namespace tailtrace {

struct Diagnosis {
  Machine machine;
  Trials trials;
  std::vector<Verdict> engines, surroundings;
};

Diagnosis diagnose(Machine machine, Trials trials);

std::string doctor_text(const Diagnosis& diagnosis, bool color);

// Schema "tailtrace.doctor/1".
nlohmann::ordered_json doctor_json(const Diagnosis& diagnosis);

}  // namespace tailtrace
