#include "plugin/cli/commands.h"

namespace tailtrace {

std::vector<Command> all_commands() {
  return {serve_command(), decode_command(), doctor_command()};
}

}  // namespace tailtrace
