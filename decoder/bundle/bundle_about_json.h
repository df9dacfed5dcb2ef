// BundleAbout as the members of bundle.json that BUNDLE.md draws.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "decoder/bundle/bundle_about.h"

namespace tailtrace {

// Adds "recorded", "modules" and "core" to a bundle's object, as far as there is anything.
void add_about(const BundleAbout& about, nlohmann::ordered_json& bundle);
// The same for an object of its list of threads: "name", "registers", "stack".
void add_thread_state(const BundleThreadState& state, nlohmann::ordered_json& thread);

// What of it a bundle's object has. What is not as it should be is as if it were not there.
BundleAbout read_about(const nlohmann::json& bundle);
BundleThreadState read_thread_state(const nlohmann::json& thread);

}  // namespace tailtrace
