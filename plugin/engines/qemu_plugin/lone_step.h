// Lone step: a debugger has one thread step while all others stand, as over a breakpoint
// (BlocksHeader::stepped). qemu 7.2 has the others run, and GDB does not survive to be told of a
// stop of theirs before that step is done: it waits for ever, or ends by an internal error. A
// thread that stops meanwhile tells of it later (stub_gate.h).
//
// Threading: any thread, unless said otherwise.
#pragma once

namespace tailtrace {

// A thread may have been told to step alone. On the thread that stands in the stub, before any
// other one runs.
void renew_lone_step();

// Whether one has, other than this thread, and has not stopped since.
bool does_another_step_alone();

// This thread has stopped, and is the next to tell of it. True: it was the one to step.
bool end_lone_step();

// In the child of a fork, which no debugger holds.
void forget_lone_step();

}  // namespace tailtrace
