// Interrupted call: a system call that waits, and that a signal has ended with EINTR. Where the
// debugger keeps that signal from the program (Ctrl-C), the kernel has it wait on without its
// knowledge (signal(7), "Interruption of system calls and library functions by stop signals"). qemu
// 7.2 asks the debugger only when the call has ended; so the thread makes it again. A time to wait
// that is not an absolute one begins anew.
//
// Threading: on the thread that it is about.
#pragma once

#include <cstdint>

namespace tailtrace {

// The thread leaves this call.
void note_call_end(std::uint32_t cpu, std::int64_t number, std::int64_t result);

// The thread, which stands, is told to run with a signal, or without.
void settle_interrupted_call(bool has_signal);

}  // namespace tailtrace
