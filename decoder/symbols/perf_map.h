// Perf maps: text files in which a program that generates code tells perf what it made. JIT.md
// draws them.
//
// Threading: pure functions.
#pragma once

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/symbols/generated_functions.h"

namespace tailtrace {

// Adds what the text of a perf map tells. `name` is what errors call it. Errors: kBadInput when
// lines of it are none, or are more than can be kept; all others are added.
Result<void> add_perf_map(std::string_view text, const std::string& name,
                          GeneratedFunctions& functions);

}  // namespace tailtrace
