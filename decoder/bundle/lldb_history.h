// Histories out of LLDB's trace bundles: the raw trace of a thread, decoded when it is asked for.
//
// Threading: pure functions.
#pragma once

#include "decoder/bundle/lldb_bundle.h"
#include "decoder/history/opened_thread.h"

namespace tailtrace {

// A thread of a process of the bundle, without maps. Errors: kBadInput when its trace is not kept
// by thread but by processor; the trace cannot be read. A module whose code cannot be read is a
// problem only.
Result<OpenedThread> open_lldb_thread(const LldbBundle& bundle, const LldbProcess& process,
                                      const LldbThread& thread);

}  // namespace tailtrace
