// What a signal does to a process, as the kernel tells in /proc/PID/status.
//
// Threading: functions without state.
#pragma once

#include <cstdint>

namespace tailtrace {

// Whether a signal, on its way to a process, will end it: nothing handles or ignores it, and by
// default it does.
bool is_deadly(std::int32_t pid, int signal);

}  // namespace tailtrace
