// What to say of a place that was never reached: whether there is any such place at all.
//
// Threading: as ProcessSymbols.
#pragma once

#include <functional>
#include <optional>

#include "decoder/base/result.h"
#include "decoder/history/location.h"
#include "decoder/symbols/process_symbols.h"

namespace tailtrace {

// kNegative, with why and what is like it, when no file that code is known of has the place, or a
// breakpoint on it could not be right there if `entry` is asked for; nothing when one has, or there
// is too much to look through. `wanted` is asked for each function that is looked at; where it says
// false, nobody knows.
std::optional<Error> missing_place(
    const Location& location, bool entry, ProcessSymbols& symbols,
    const std::function<bool()>& wanted = [] { return true; });

}  // namespace tailtrace
