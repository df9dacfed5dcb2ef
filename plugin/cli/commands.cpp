#include "plugin/cli/commands.h"

namespace tailtrace {

std::vector<Command> all_commands() { return {doctor_command()}; }

}  // namespace tailtrace
