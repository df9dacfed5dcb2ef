// The always-on recorder of a program that the processor runs itself: one that is started, or one
// that runs already. It holds the program by ptrace(2), so it sees every signal before the program
// does, and writes nothing into it.
//
// Threading: one thread, which is the program's tracer; it waits until the end.
#pragma once

#include <sys/types.h>

#include "plugin/provider/followed_program.h"
#include "plugin/recorder/branch_keeper.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

// The program ends with us while it is recorded, and is waited for to its end.
// Errors: it cannot be recorded; what was to end the recording is not there; no bundle could be
// written, neither at its place nor at the plan's fallback.
Result<FlightEnd> record_started(FollowedProgram program, std::unique_ptr<BranchKeeper> keeper,
                                 const FlightPlan& plan);

// The program goes on when the recording has ended. Errors: the same; kGone, kPermission.
Result<FlightEnd> record_running(pid_t pid, std::unique_ptr<BranchKeeper> keeper,
                                 const FlightPlan& plan);

}  // namespace tailtrace
