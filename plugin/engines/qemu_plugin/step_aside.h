// Step aside: a thread that waits at the stub gate before a block leaves the block, and waits in
// front of the stub instead. There it is out of qemu's own way: all that wants threads to be out of
// their blocks (start_exclusive) would wait for it for ever. There, too, its registers are its own
// to change, and a step of it begins where it stands. No debugger is told of that stop: when its
// turn comes, the thread goes on.
//
// Threading: any thread, unless said otherwise.
#pragma once

#include <cstdint>
#include <string_view>

namespace tailtrace {

// On the thread that is about to execute the block at `pc`. Does not come back, unless this is a
// qemu that takes it otherwise.
void step_aside(std::uint32_t cpu, std::uint64_t pc);

// The stub is about to tell of this thread's stop for this signal, by GDB's number: whether it has
// only stepped aside.
bool has_stepped_aside(int signal);

// The thread that is inside has read this request: the thread whose registers it reads or changes;
// 0: none. Inside of a block they lack the flags of the last result, which a debugger that puts
// them back would take away.
std::int32_t thread_of_registers(std::string_view request);

// What changes is the thread's that is inside, until another one is selected. On that.
void select_own_thread();

}  // namespace tailtrace
