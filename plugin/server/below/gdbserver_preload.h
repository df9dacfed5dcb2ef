// Whether gdbserver can be left alone with the registers of this machine's processor.
//
// Threading: free for all.
#pragma once

#include <string>

#include "decoder/base/result.h"

namespace tailtrace {

// The library to be preloaded into gdbserver (gdbserver_preload/ptrace.cpp); empty where none is
// needed. Errors: as find_own_file().
Result<std::string> preload_of_gdbserver();

}  // namespace tailtrace
