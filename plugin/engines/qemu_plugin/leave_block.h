// How a thread leaves a block in its middle. qemu 7.2 does so for one reason only: an instruction
// that faulted. So it is told by its own handler of SIGBUS that this one did (host_signal_handler
// in linux-user/signal.c), and its stub tells of a SIGSEGV before the instruction, which the debug
// server keeps from the program. But as the kernel does with a fault, qemu takes the handler of
// SIGSEGV away from a program that blocks or ignores it then.
//
// Threading: on the thread that it is about.
#pragma once

namespace tailtrace {

// Before the instruction that is translated where this was called from: at the beginning of a block
// or behind an access to memory, where qemu's copy of the registers is whole. Does not come back,
// unless this is a qemu that takes it otherwise.
void leave_block();

}  // namespace tailtrace
