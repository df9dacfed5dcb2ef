// Interrupted call: a system call that waits, and that a signal has ended with EINTR. Where the
// debugger keeps that signal from the program (Ctrl-C), the kernel has it wait on without its
// knowledge (signal(7), "Interruption of system calls and library functions by stop signals"). qemu
// 7.2 asks the debugger only when the call has ended; so the thread makes it again. A time to wait
// that is not an absolute one begins anew.
//
// So is one whose thread the debugger has call a function meanwhile: it gets back the registers
// that it had in the call, and makes that again, or has its result.
//
// Threading: on the thread that it is about.
#pragma once

#include <cstdint>

namespace tailtrace {

// The thread makes this call, and leaves it.
void note_call_begin(std::uint32_t cpu, std::int64_t number);
void note_call_end(std::uint32_t cpu, std::int64_t number, std::int64_t result);

// The thread, which stands, is told to run with a signal, or without.
void settle_interrupted_call(bool has_signal);

}  // namespace tailtrace
