// Trap mask: whether the program's signal mask lets a SIGTRAP through that we raise behind a system
// call. qemu blocks all signals during some calls and puts the program's mask back behind us
// (process_pending_signals in qemu 7.2): what that will be is known from the call.
//
// Threading: on the thread that it is about.
#pragma once

#include <cstdint>

#include "plugin/engines/qemu_plugin/syscalls.h"

namespace tailtrace {

// The thread makes this system call now.
void foresee_trap_mask(std::uint32_t cpu, std::int64_t number, const SyscallArguments& arguments);

// It has done so, and the mask is the foreseen one until it executes again.
void settle_trap_mask(bool succeeded);
void forget_trap_mask();

bool is_trap_blocked();

}  // namespace tailtrace
