// Caught calls: system calls that a debugger waits for (BlocksHeader::caught). qemu 7.2's stub
// knows of none.
//
// A thread leaves a block (leave_block.h) whose system call may be one, at its beginning; the
// stub's reply says `undone`, and the debug server has it step. So it comes to the call as to a
// block of its own, where the number is known, and leaves that one, too: the reply says
// `syscall_entry`, as gdbserver's does. When it runs again it makes the call, and stops
// behind it as one that is stepped (call_trap.h). The reply says `runs` if the trap is sure to
// come: then qemu need not step it, which a debugger that detaches could not take back.
//
// Threading: each function on the thread that it is about, unless said otherwise.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/engines/qemu_plugin/block_table.h"

namespace tailtrace {

// The thread has entered a block and executed nothing of it. Does not come back if it stops.
void stop_at_call(std::uint32_t cpu, const BlockInfo& block, const std::uint64_t* registers);

// It has made a call: the next one at the same place is another one.
void forget_stop_at_call(std::int64_t result);

// What the stub's reply to the stop that this thread tells of is to say, if it is one of ours;
// empty: it is not.
std::string caught_word();

// The debugger may wait for other calls. On the thread that stands in the stub, before any other
// one runs.
void renew_caught_calls();

// In the child of a fork, which no debugger holds.
void forget_caught_calls();

}  // namespace tailtrace
