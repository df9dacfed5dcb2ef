// The stack of a thread that stands, by what the server below tells of its registers and memory.
//
// Threading: one thread at a time.
#pragma once

#include <vector>

#include "plugin/server/below/below.h"

namespace tailtrace {

// Where it stands, and where each call that is open goes on, innermost first; empty when the server
// does not tell. REQUIRES: the thread is stopped.
std::vector<Address> thread_stack(Below& below, ThreadId thread);

}  // namespace tailtrace
