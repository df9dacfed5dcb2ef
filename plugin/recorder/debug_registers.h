// The processor's debug registers of a traced thread: up to four places at which it traps, without
// anything written into its memory (SDM volume 3, section 18.2).
//
// Threading: the tracer's thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/recorder/flight.h"

namespace tailtrace {

constexpr std::size_t kDebugRegisters = 4;

struct DebugPlace {
  Address address;
  bool is_code = false;     // it comes there; else it writes, or reads, there
  unsigned size_bytes = 1;  // 1, 2, 4 or 8
  bool reads = false;
};

// Of a thread that stands; hits of other places are forgotten. REQUIRES: kDebugRegisters places at
// most.
// Errors: the system refuses, as for addresses that are no user's.
Result<void> set_debug_places(pid_t tid, std::span<const DebugPlace> places);

// Which of the places a thread that trapped came to; nothing when it was none. Asked once.
std::optional<std::size_t> take_debug_hit(pid_t tid);

}  // namespace tailtrace
