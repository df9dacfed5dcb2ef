// Thread room: how many more threads the debugger has room for in its trace of the process
// (BlocksHeader::thread_room). Nobody asks a program that runs for its threads, so one that is made
// beyond that stops: it raises SIGTRAP, and the stub's reply says `create`, as gdbserver's does of
// a new thread. The debug server keeps the signal to itself.
//
// The trap is raised where nothing blocks it, so that it is told at once: a program that waits for
// signals by itself, or goes on without a debugger, never meets it.
//
// Threading: each function says on which thread it runs.
#pragma once

#include <cstdint>

namespace tailtrace {

enum class ThreadRoom : std::uint8_t {
  kHeld,    // or nobody counts
  kLacks,   // and it is to be told
  kRaised,  // the trap
  kTold,
};

// For a new thread, under the recorder's lock.
ThreadRoom take_thread_room();

// The thread is about to execute; on itself. Raises the trap if it is due and can be taken.
void tell_of_lacking_room(std::uint32_t cpu);

// The stub is about to tell of this thread's stop for this signal, by its number; on itself.
// Whether it is for the trap.
bool is_told_of_room(int signal);

}  // namespace tailtrace
