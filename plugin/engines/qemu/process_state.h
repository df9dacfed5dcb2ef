// What the kernel says of a process, for telling a live recording from one left behind.
//
// Threading: functions without state.
#pragma once

#include <cstdint>

namespace tailtrace {

// When the process was started, in clock ticks since boot (proc(5), stat field 22); it tells a
// process from a later one with the same number. 0: there is no such process, or it has ended and
// only waits for its parent.
std::uint64_t process_start_time(std::int32_t pid);

}  // namespace tailtrace
