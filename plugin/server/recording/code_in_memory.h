// The code that a debugger decodes a history with: what memory holds at the stop.
//
// A history knows what was executed, a debugger only what is there now: a library may be unloaded
// by then, a trampoline on the stack overwritten, generated code replaced.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "decoder/history/snapshot.h"

namespace tailtrace {

// Returns how many bytes could be read.
using ReadMemory = std::function<std::size_t(Address, std::span<std::uint8_t>)>;

// The same history; where memory holds something else than what it executed last, or nothing, its
// code says so in a newest epoch behind all records. Reads the pages that were executed.
ThreadSnapshot with_code_in_memory(ThreadSnapshot snapshot, const ReadMemory& read);

}  // namespace tailtrace
