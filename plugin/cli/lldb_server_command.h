// `tailtrace-lldb-server`: what LLDB starts in the place of its lldb-server when
// LLDB_DEBUGSERVER_PATH names it. It has lldb-server's command line, and settings in the
// environment, for LLDB decides what stands on that line:
//
//   TAILTRACE_LLDB_SERVER   the lldb-server to put below; else the one of the LLDB that asks
//   TAILTRACE_ENGINE        as --engine of `tailtrace serve`
//   TAILTRACE_RING          as --ring
//   TAILTRACE_HANDOVER      as --handover
//
// Threading: parsing is pure; run_lldb_server is for the main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

// The command line of `lldb-server gdbserver`.
struct LldbServerWords {
  int fd = -1;                      // --fd: LLDB is connected there
  std::string address;              // [HOST]:PORT, where to listen or, with `reverse`, to connect
  bool reverse = false;             // --reverse-connect
  bool new_session = false;         // --setsid
  std::string port_path;            // --named-pipe: where the port is to be written
  int port_fd = -1;                 // --pipe: the same
  std::vector<std::string> passed;  // the rest, for the lldb-server below
};

// `args` are those behind `gdbserver`. Errors: kUsage.
Result<LldbServerWords> parse_lldb_server_words(const std::vector<std::string>& args);

// Runs to the end of the session; `args` without the program's name. Returns the exit status.
int run_lldb_server(std::vector<std::string> args);

}  // namespace tailtrace
