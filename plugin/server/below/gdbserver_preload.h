// Whether gdbserver can be left alone with this machine's processor and what it is to do.
//
// Threading: free for all.
#pragma once

#include <string>

#include "decoder/base/result.h"

namespace tailtrace {

// The library to be preloaded into gdbserver (gdbserver_preload/ptrace.cpp); empty where none is
// needed. Errors: as find_own_file().
Result<std::string> preload_of_gdbserver(bool may_attach);

}  // namespace tailtrace
