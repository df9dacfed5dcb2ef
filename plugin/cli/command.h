// Command: one verb of the `tailtrace` command line, as a row of a table.
//
// The table is the only place that knows the verbs and their options: the parser, `--help`, the man
// page and the shell completions are all made from it. To add a verb, write a function that returns
// its Command in NAME_command.cpp, declare it in commands.h and name it in commands.cpp.
//
// Threading: a command runs on the main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

// Exit statuses of the command line that are no ErrorCode. A failed command exits with the number
// of its ErrorCode.
constexpr int kExitDone = 0;
constexpr int kExitNegative = static_cast<int>(ErrorCode::kNegative);
constexpr int kExitNoEngine = static_cast<int>(ErrorCode::kNoEngine);

// What a command is run with, beside the options that its `define` bound to variables of its own.
struct Invocation {
  std::vector<std::string> program;  // what Command::take_program took
  std::vector<std::string> extras;   // words that no option took; only if the App allows extras
  std::FILE* out = stdout;           // data
  std::FILE* err = stderr;           // talk
};

// Its value is the exit status.
using RunCommand = std::function<Result<int>(const Invocation&)>;

struct Example {
  std::string_view line;  // as it is typed
  std::string_view says;  // what it is good for: a few words
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line without a full stop
  std::string_view usage;    // what follows the name: "[OPTIONS] -- PROGRAM [ARG...]"
  std::vector<Example> examples;
  std::vector<std::string_view> elsewhere = {};  // other tools' words for it, and ours in debuggers

  // Adds the options and positional words to the App and returns what to run once it has parsed:
  // the variables that the options write to live as long as the returned function.
  std::function<RunCommand(CLI::App&)> define;

  // Removes from the arguments what is not for the option parser, such as another program's command
  // line, and returns it. May be empty. Errors: kUsage.
  std::function<Result<std::vector<std::string>>(std::vector<std::string>&)> take_program;

  std::string_view details;  // further paragraphs for the man page; may be empty
};

// take_program of the usual kind: everything behind the first `--`.
Result<std::vector<std::string>> take_behind_dashes(std::vector<std::string>& args);

// Runs `tailtrace ARGS` and returns its exit status; errors are shown on `err`.
int run_command_line(const std::vector<Command>& table, std::vector<std::string> args,
                     std::FILE* out, std::FILE* err);

// The verb of the table that was probably meant; empty when none is near.
std::string nearest_verb(const std::vector<Command>& table, std::string_view typed);

}  // namespace tailtrace
