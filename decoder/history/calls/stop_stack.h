// The stack at the stop: callers that a history does not tell of, because they were entered before
// it began.
//
// Whoever held the thread when it stood may know its stack, as a debugger's back-trace shows it.
// Calls that the history has as open at its end are the innermost of that stack; what is below them
// was open all the time, and so was below all that these calls ever called.
//
// Threading: pure functions; one thread at a time for a symbolizer.
#pragma once

#include <span>

#include "decoder/history/calls/call_path.h"

namespace tailtrace {

// The item up to which calls_up_to() has the callers of an item that are known: the newest one,
// which is behind all returns to them, and at which the stack is known that the thread had when it
// stood; the item itself where that is too far away.
std::uint64_t anchor_of(const History& history, std::uint64_t item);

// Adds to the path what is below it of the stack: where the thread stood, and where each call that
// was open goes on, innermost first. Nothing where the calls that were recorded as open at the stop
// are not those of the stack, or the path's outermost call is none of them.
// REQUIRES: call_path() of these calls.
void add_older_callers(const History& history, Symbolizer& symbols, const CallHistory& calls,
                       std::span<const Address> stack, std::size_t limit_frames, CallPath& path);

}  // namespace tailtrace
