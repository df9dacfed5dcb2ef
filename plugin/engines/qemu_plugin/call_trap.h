// Call trap: a thread that the debugger steps (BlocksHeader::stepped) over a system call or into a
// signal handler stops right behind the one, and before the first instruction of the other.
// qemu 7.2 executes one instruction more: it leaves its code to make the call, and takes for the
// step what is executed when it comes back (cpu_exec in cpu-exec.c). Signals are delivered there,
// too.
//
// The thread raises SIGTRAP behind the call, or before the signal is delivered, and the stub's
// reply says `called`. While the program blocks that, the step ends as qemu has it; should it run,
// behind the first call where it can. One that is told when the step has ended otherwise is the
// debug server's to keep to itself.
//
// Threading: each function on the thread that it is about.
#pragma once

#include <cstdint>

namespace tailtrace {

// What a call returns within qemu that is to be made again, once the signal is dealt with that
// interrupted it (QEMU_ERESTARTSYS).
constexpr std::int64_t kToBeMadeAgain = -512;

// Whether the thread, which stands, is about to make another process or thread. One that steps has
// qemu's child step as well, with nobody to tell: SIGTRAP kills it. So it must run, and only the
// trap ends the step.
bool is_about_to_fork();

// Whether the debugger steps this thread.
bool is_stepped();

// The thread is behind a system call, with what the program will see of it.
void raise_call_trap(std::int64_t result);

// The thread, which stands, was told to run.
void raise_handler_trap();

// The stub is about to tell of this thread's stop for this signal, by its number: whether it is for
// the trap.
bool is_call_trap(int signal);

}  // namespace tailtrace
