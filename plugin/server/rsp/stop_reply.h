// Stop replies: what a server says when the program stopped, exited or lost a thread.
//
// Parsing one is part of every single step, so it allocates nothing.
//
// Threading: values, no shared state.
#pragma once

#include <optional>
#include <string_view>

#include "decoder/base/types.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace::rsp {

struct StopReply {
  enum class Kind {
    kStopped,       // T, S
    kExited,        // W
    kKilled,        // X
    kThreadExited,  // w
    kNothingRuns,   // N
  };
  // Why a thread stopped, when the server says more than the signal.
  enum Reason : std::uint16_t {
    kSwBreak = 1 << 0,
    kHwBreak = 1 << 1,
    kWatch = 1 << 2,
    kFork = 1 << 3,
    kVfork = 1 << 4,
    kVforkDone = 1 << 5,
    kExec = 1 << 6,
    kThreadCreated = 1 << 7,
    kLibrary = 1 << 8,
    kSystemCall = 1 << 9,
    kOther = 1 << 10,
  };

  Kind kind = Kind::kStopped;
  std::uint8_t signal = 0;    // GDB's number; the exit status of kExited
  std::uint16_t reasons = 0;  // Reason bits
  std::optional<ThreadSelector> thread;
  std::optional<std::int32_t> process;  // of kExited and kKilled
  std::optional<Address> pc;            // from the expedited registers
  std::optional<ThreadSelector> child;  // of kFork and kVfork
  // Of lldb-server: all threads of the process and where they are, hexadecimal numbers separated by
  // commas; parts of what was parsed.
  std::string_view threads, thread_pcs;
  std::string_view stop_infos;  // and why they stopped (`jstopinfo`), JSON in hexadecimal

  // A trap without any further reason: what a finished single step looks like.
  bool is_plain_trap() const { return kind == Kind::kStopped && signal == 5 && reasons == 0; }
};

// REQUIRES: runs are expanded. Nothing when it is no stop reply.
std::optional<StopReply> parse_stop_reply(std::string_view payload);

}  // namespace tailtrace::rsp
