#include <unistd.h>

#include "plugin/cli/commands.h"
#include "plugin/cli/say_at_once.h"
#include "plugin/cli/serve_options.h"
#include "plugin/engines/qemu/program_check.h"
#include "plugin/server/serve.h"

namespace tailtrace {
namespace {

// What gdbserver would say of a program that cannot run does not help. Behind a wrapper only the
// wrapper knows what is run.
Result<void> check_program(const ServeOptions& options) {
  if (options.program.empty() || !options.wrapper.empty()) return {};
  std::vector<std::string> program = options.program;
  // gdbserver looks into the current folder before PATH.
  if (program.front().find('/') == std::string::npos && ::access(program[0].c_str(), F_OK) == 0)
    program.front().insert(0, "./");
  auto found = find_program(program);
  if (!found) return fail(std::move(found.error()));
  return {};
}

}  // namespace

Command serve_command() {
  return {
      .name = "serve",
      .summary = "Stand in for gdbserver, and record",
      .usage = "[OPTIONS] COMM [PROGRAM [ARG...]] | --attach COMM PID",
      .examples =
          {
              {"tailtrace serve --once :1234 ./program", "then in GDB: target remote :1234"},
              {"gdb -ex 'target remote | tailtrace serve - ./program' ./program", "over a pipe"},
              {"tailtrace serve --attach :1234 4711", "a running process"},
              {"tailtrace serve --multi :1234", "target extended-remote :1234"},
          },
      .elsewhere = {"gdbserver", "server"},
      .define = [](CLI::App& app) -> RunCommand {
        auto words = std::make_shared<ServeWords>();
        add_serve_options(app, *words);
        return [words](const Invocation& invocation) -> Result<int> {
          auto options = serve_options(*words, invocation.program, invocation.extras);
          if (!options) return fail(std::move(options.error()));
          if (auto ok = check_program(*options); !ok) return fail(std::move(ok.error()));
          options->say = [err = invocation.err](std::string_view line) { say_at_once(err, line); };
          return serve(*options);
        };
      },
      .take_program = take_wrapper,
      .details =
          "COMM is HOST:PORT, :PORT (loopback; port 0 takes a free one and says which), `-` or "
          "stdio, or unix:PATH. The command line is gdbserver's, so that tailtrace can be put "
          "wherever a gdbserver is expected; what follows PROGRAM is the program's own.",
  };
}

}  // namespace tailtrace
