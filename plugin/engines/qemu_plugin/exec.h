// Execve: qemu-user would hand the new program to the kernel, and it would run natively, out of
// our sight. So the plugin executes qemu instead, with the new program under it.
//
// Threading: on the calling thread.
#pragma once

#include <cstdint>

#include "plugin/engines/qemu_plugin/syscalls.h"

namespace tailtrace {

// Before qemu does an execve or execveat. Does not return when the new program is followed; else
// qemu goes on, and the program, if the kernel takes it, is not recorded.
void follow_exec(std::int64_t number, const SyscallArguments& arguments);

// It failed, and the program goes on.
void exec_failed();

// Remembers how qemu was started. Before anything else looks for them.
void remember_qemu_options();

}  // namespace tailtrace
