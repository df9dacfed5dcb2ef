// How much of a history is kept, and how much of that a debugger is given, in words for its user.
//
// Threading: pure functions.
#pragma once

#include <string>

#include "plugin/server/below/server_options.h"

namespace tailtrace {

enum class Reader { kGdb, kLldb };

// One line. Where the engine does not count branches (engine.h), what is kept is left out.
std::string sizes_in_words(const ServeOptions& options, bool counts_branches, Reader reader);

}  // namespace tailtrace
