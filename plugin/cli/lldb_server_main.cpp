#include "plugin/cli/lldb_server_command.h"

int main(int argc, char** argv) { return tailtrace::run_lldb_server({argv + 1, argv + argc}); }
