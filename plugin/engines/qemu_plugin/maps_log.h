// What the program has mapped where, kept beside its rings for those who look for names later: the
// file `maps`, as /proc/PID/maps has it, with the guest's addresses and files only.
//
// Threading: on any thread.
#pragma once

#include <cstdint>

#include "plugin/engines/qemu_plugin/syscalls.h"

namespace tailtrace {

// Before each system call of the program: writes the file when code was mapped since, or when this
// process has none yet. A file that cannot be written is none; recording goes on.
void keep_maps(std::int64_t number, const SyscallArguments& arguments);

}  // namespace tailtrace
