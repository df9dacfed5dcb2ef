// Texts made from the table of commands: help, man page, completions.
//
// Threading: pure functions.
#pragma once

#include <string>
#include <vector>

#include "plugin/cli/command.h"

namespace tailtrace {

constexpr char kHelpFlag[] = "-h,--help";

// An option or positional word as help shows it.
struct OptionHelp {
  std::vector<std::string> names;  // "--engine", "-x"; one without dashes for a positional word
  std::string value;               // "NAME"; empty for a switch
  std::vector<std::string> choices;
  std::string text;
  bool positional = false;
};

// The options that a command defines, in the order in which it defines them.
std::vector<OptionHelp> options_of(const Command& command);

std::string overview_help(const std::vector<Command>& table);
std::string command_help(const Command& command);

}  // namespace tailtrace
