// What the program has mapped where, kept beside its rings for those who look for names later: the
// file `maps`, as /proc/PID/maps has it, with the guest's addresses and files only; `former-maps`
// (decoder/code/former_maps.h), when a file is gone; and the build ids of these files, by which
// readers tell others that came to be in their places.
//
// Threading: on any thread.
#pragma once

#include <cstdint>

#include "plugin/engines/qemu_plugin/syscalls.h"

namespace tailtrace {

// What is mapped now is qemu's own. Before the program is.
void note_own_mappings();

// Before each system call of the program: writes the files when code was mapped since, or when this
// process has none yet. A file that cannot be written is none; recording goes on.
void keep_maps(std::int64_t number, const SyscallArguments& arguments);

// Behind each one: writes them when code is gone.
void keep_unmapped();

}  // namespace tailtrace
