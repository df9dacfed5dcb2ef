// How a thread leaves a block in its middle. qemu 7.2 does so for one reason only: an instruction
// that faulted. So it is told by its own handler of SIGBUS that this one did (host_signal_handler
// in linux-user/signal.c), and its stub tells of a signal before the instruction, which the debug
// server keeps from the program.
//
// That is a SIGBUS, as one that a process sends, which waits while the program blocks it. Then it
// is a SIGSEGV, as of a fault, which nothing blocks; qemu takes the program's handler of it away if
// that is blocked or ignored, and it is put back (kept_handler.h).
//
// Threading: on the thread that it is about.
#pragma once

namespace tailtrace {

// Before the instruction that is translated where this was called from: at the beginning of a block
// or behind an access to memory, where qemu's copy of the registers is whole. `again`: it was
// called there, and the thread did not stop. Does not come back, unless this is a qemu that takes
// it otherwise.
void leave_block(bool again);

// The stub is about to tell of this thread's stop for this signal, by GDB's number: whether it is a
// SIGBUS of ours that waited for too long.
bool is_late_bus(int signal);

}  // namespace tailtrace
