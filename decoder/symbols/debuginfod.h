// Debuginfod: debug files from the servers that the user names, by build id, through elfutils' own
// client (debuginfod_find_debuginfo(3)), which keeps what it got under ~/.cache.
//
// The client is loaded when it is asked for and not before: whoever does not ask has nothing in his
// process that could go to a network.
//
// Threading: what is returned belongs to one thread at a time.
#pragma once

#include "decoder/symbols/module_symbols.h"

namespace tailtrace {

// Errors: kUsage when the environment names no server (DEBUGINFOD_URLS), or the client is not
// installed.
Result<DebugFetch> ask_debuginfod();

}  // namespace tailtrace
