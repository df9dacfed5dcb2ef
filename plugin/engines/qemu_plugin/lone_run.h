// Lone run: a debugger has one thread run while all others stand (BlocksHeader::stepped), as it
// does to step over a breakpoint, and with `set scheduler-locking on`. qemu 7.2 has the others run,
// and neither GDB nor LLDB is prepared for what they do then.
//
// A thread that comes to its next block meanwhile steps aside (step_aside.h). Others wait at either
// end of a system call. One that stops for something else tells of it later (stub_gate.h).
//
// Where memory is watched that was not, a lone run lasts until the thread that stood in the stub
// executes something: by then qemu has thrown away the code that does not look at accesses, which
// the others would still be in (watch.h).
//
// Threading: any thread, unless said otherwise.
#pragma once

#include <cstdint>

namespace tailtrace {

// A thread may have been told to run alone; `is_code_old`: else this one does until it executes
// something. On the thread that stands in the stub, before any other one runs.
void renew_lone_run(bool is_code_old);

bool runs_alone();
bool does_another_run_alone();
// Until none does.
void wait_for_lone_run();

// This thread executes something.
void end_first_of_lone_run();
// It has stopped and tells of it. True: it was the one to run.
bool end_lone_run();

// It ends. The debugger waits for a word of that, which another one has to say: none may execute
// anything before.
bool end_lone_thread();
bool is_end_owed();
// The thread of which this one, which is in the stub, is to say it; 0: of none.
std::int32_t take_owed_end();

// In the child of a fork, which no debugger holds.
void forget_lone_run();

}  // namespace tailtrace
