// The table of all verbs. See command.h for how to add one.
#pragma once

#include <vector>

#include "plugin/cli/command.h"

namespace tailtrace {

// In the order in which help lists them.
std::vector<Command> all_commands();

}  // namespace tailtrace
