// `tailtrace serve`: a gdb-remote server that records.
//
// It stands between a debugger and the server that really holds the program (gdbserver, or qemu's
// own stub), answers the branch trace packets itself and relays the rest. Its command line is
// gdbserver's, so that it can be put wherever a gdbserver is expected.
//
// Threading: serve() runs its own loop on the calling thread until it is done; one at a time in a
// process, for it handles SIGINT, SIGTERM and SIGCHLD meanwhile.
#pragma once

#include "decoder/base/result.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

// Serves until the debugger and the program are done with.
// Returns the exit status. Errors: kUsage, kPermission, kSystem, kNoEngine, all before a debugger
// is connected.
Result<int> serve(const ServeOptions& options);

}  // namespace tailtrace
