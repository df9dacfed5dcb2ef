#include "plugin/cli/commands.h"

int main(int argc, char** argv) {
  return tailtrace::run_command_line(tailtrace::all_commands(), {argv + 1, argv + argc}, stdout,
                                     stderr);
}
