// Files made from the table of commands and installed beside the program: the man page and the
// shells' completions; and the table for programs, as LLDB's plugin.
// `tailtrace help --man|--bash|--zsh|--fish|--json` prints them.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "plugin/cli/command.h"

namespace tailtrace {

// In roff with the man macros; section 1.
std::string man_page(const std::vector<Command>& table);

std::string bash_completion(const std::vector<Command>& table);
std::string zsh_completion(const std::vector<Command>& table);
std::string fish_completion(const std::vector<Command>& table);

// Schema "tailtrace.verbs/1".
std::string table_json(const std::vector<Command>& table);

}  // namespace tailtrace
