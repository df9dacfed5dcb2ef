// What a server is told to serve, and how.
//
// Threading: values.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace {

enum class EngineChoice { kAuto, kPt, kBts, kLbr, kQemu, kStep };

struct ServeOptions {
  // Where the debugger connects: "HOST:PORT", ":PORT" (loopback; port 0 takes a free one and says
  // which), "-" or "stdio", or "unix:PATH".
  std::string comm;

  // Exactly one of these says what is debugged; none of them needs `multi`.
  std::vector<std::string> program;  // and its arguments
  std::optional<int> attach_pid;

  bool multi = false;  // stay without a program: the debugger starts one (extended-remote)
  bool once = false;   // end with the first connection
  std::vector<std::string> wrapper;
  bool startup_with_shell = true;
  bool disable_randomization = true;
  bool allow_remote_hosts = false;  // listen on addresses other than loopback

  EngineChoice engine = EngineChoice::kAuto;
  bool since_start = false;  // show what the engine has since the program began, not since
                             // `record btrace`; the qemu engine only

  std::uint64_t ring_records = 1ull << 16;  // kept for each thread; a power of two
  // What the debugger is given of it, at most: it decodes all of that before its prompt returns.
  std::uint64_t handover_instructions_pt = 1'000'000;
  std::uint64_t handover_instructions_bts = 300'000;
  std::uint64_t handover_instructions_lldb = 100'000;  // its list of calls takes 46 KB a call
  bool handover_is_said = false;  // by the user: a larger buffer of the debugger's is not for more

  std::string gdbserver = "gdbserver";  // a name in PATH or a path
  // Path of LLDB's own server. Then it is the one below, and `gdbserver`, `program`, `attach_pid`
  // and what belongs to them are not looked at. Empty: none.
  std::string lldb_server;
  std::vector<std::string> lldb_server_words;  // what follows `gdbserver --fd=N` behind its path
  // A descriptor on which the debugger is connected already, taken; -1: see `comm`.
  int connected = -1;
  std::string qemu;                       // the same; empty: $TAILTRACE_QEMU, else qemu-x86_64
  std::vector<std::string> pass_through;  // gdbserver's options that concern itself: --debug, ...

  // A folder that is made (0700) and left behind with the recording in it, as the engine has it:
  // the rings and the code image, or a bundle of what there was at the end. Empty: nothing stays.
  std::string keep_folder;

  // Is given what there is to say while serving, line by line, in gdbserver's words: programs that
  // start a gdbserver wait for them on its stderr. May be empty.
  std::function<void(std::string_view line)> say;

  // Called once, when a debugger can connect, with COMM as it turned out (the port that was taken).
  std::function<Result<void>(const std::string& comm)> on_listening;

  // What the program gets as its descriptors 0, 1 and 2. Without it: serve()'s own, or what
  // gdbserver gives when those carry the protocol.
  std::optional<std::array<int, 3>> program_stdio;

  // LLDB's detach ends the program: see LldbFace.
  bool detach_kills = false;

  // A terminal that the debugger has now and shares with the program (SharedTerminal); -1: none.
  int terminal = -1;

  // Called with the wait status of a program that has ended by itself, or by a signal, before the
  // debugger hears of it.
  std::function<void(int status)> on_program_end;
};

}  // namespace tailtrace
