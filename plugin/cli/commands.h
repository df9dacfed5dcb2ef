// The table of all verbs, and the function behind each row. See command.h for how to add one.
#pragma once

#include <vector>

#include "plugin/cli/command.h"

namespace tailtrace {

Command attach_command();
Command calls_command();
Command coverage_command();
Command decode_command();
Command diff_command();
Command doctor_command();
Command export_command();
Command find_command();
Command history_command();
Command hits_command();
Command info_command();
Command last_command();
Command open_command();
Command packets_command();
Command run_command();
Command save_command();
Command serve_command();
Command stats_command();
Command version_command();
Command watch_command();
Command why_command();

// In the order in which help lists them.
std::vector<Command> all_commands();

}  // namespace tailtrace
