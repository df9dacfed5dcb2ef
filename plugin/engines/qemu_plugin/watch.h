// Watchpoints: memory that a debugger waits for accesses to (BlocksHeader::watched). qemu's stub
// has none for programs.
//
// While there are any, code is translated with a call behind each access. A thread must stop right
// behind the instruction that made one, and can only before it (leave_block.h). So the access is
// undone, and the thread leaves its block. The stub's reply then says `undone`; the debug server
// keeps it to itself and has the thread step, which the access passes this time, while all others
// stand (stub_gate.h). What that stops with says `watch`, or `awatch`, as gdbserver's does.
//
// Translations with calls are thrown away as all are when a thread stops (gdb_handlesig in
// gdbstub.c), so code runs at its usual speed when nothing is watched any more.
//
// Threading: each function says on which thread it runs.
#pragma once

#include <string>

#include "plugin/engines/qemu_plugin/qemu_api.h"

namespace tailtrace {

// To be called behind each access of the block, if anything is watched. Under the recorder's lock.
void watch_accesses(qemu_plugin_tb* tb);

// The debugger may have watched other memory, or written to it. On the thread that stands in the
// stub, before any other one runs. True: code that was translated before looks at no accesses.
bool renew_watches();

// The same of what the kernel may have written. On the thread that made the system call.
void keep_watched_memory();

// What the stub's reply to the stop that this thread tells of is to say, if an access has to do
// with it; empty: none has. On the thread that stopped.
std::string watch_stop_word();

// Whether the instruction at `pc` is the one whose access was undone, on this thread.
bool is_undone_access(std::uint64_t pc);

// In the child of a fork, which no debugger holds.
void forget_watches();

}  // namespace tailtrace
