// Why a bundle was made, when, and how its threads stood, for people and as JSON.
//
// Threading: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "decoder/bundle/bundle_about.h"

namespace tailtrace {

// Lines; none when the bundle does not tell.
std::vector<std::string> recorded_lines(const BundleAbout& about);
// {"cause":"SIGSEGV","signal":11,"pid":40,"tid":41,"command":"...","began":"2026-...Z",
//  "ended":"2026-...Z","core":"core"}: what of it is known; empty when nothing is.
nlohmann::ordered_json recorded_json(const BundleAbout& about);

// "rax 0x0  rbx 0x7f..": four registers a line.
std::vector<std::string> register_lines(const BundleThreadState& state);
nlohmann::ordered_json registers_json(const BundleThreadState& state);

// "2026-11-22T02:26:16.123456Z" of nanoseconds since 1970.
std::string time_text(std::uint64_t realtime_ns);

}  // namespace tailtrace
