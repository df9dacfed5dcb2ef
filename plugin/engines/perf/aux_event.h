// An event with an overwriting AUX area, and beside it a small overwriting ring in which the kernel
// says what went wrong with the area.
//
// Threading: one thread at a time, as every Event.
#pragma once

#include "decoder/perf/aux_holes.h"
#include "plugin/engines/perf/event.h"

namespace tailtrace::perf {

// Opens it and maps `size_bytes` of area, or what is got. Errors: all that explain() tells.
Result<Event> open_aux_event(Kernel& kernel, Purpose purpose, perf_event_attr attr, Target target,
                             std::uint64_t size_bytes);

// The holes in the area as it is now, oldest first; `added_bytes` of the ring are looked at.
// REQUIRES: the event is quiet.
Result<std::vector<AuxHole>> read_aux_holes(const Event& event, std::uint64_t added_bytes,
                                            std::uint64_t capacity_bytes);

}  // namespace tailtrace::perf
