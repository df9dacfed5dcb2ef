// The threads of a process that stopped for signals, which lldb-server names in the stop reply of
// another one.
//
// Threading: a pure function.
#pragma once

#include <vector>

#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace::rsp {

struct SignalledThread {
  ThreadId id;
  std::uint8_t signal = 0;  // as in a stop reply

  friend bool operator==(SignalledThread, SignalledThread) = default;
};

// Those beside the thread that the reply is about. Empty where it is about none.
std::vector<SignalledThread> signalled_threads(const StopReply& reply);

}  // namespace tailtrace::rsp
