// Markers: moments that something else than the trace knows of (hits of hardware breakpoints, each
// with an address and perhaps a time), put into a history as records of kind kMarker.
//
// They are matched from the newest on: the newest hit of an address is the newest time that the
// history comes to it, and so on. Times, where both sides have them, keep hits from being matched
// with visits that came later. A gap hides hits: behind one only hits with a time are matched.
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decoder/history/snapshot.h"

namespace tailtrace {

struct MarkedMoment {
  // The instruction to be executed next: that of an execute breakpoint itself, and the one behind
  // an access to watched data.
  Address next;
  bool executes = true;    // `next` itself was executed there; false: the one before it
  std::uint64_t time = 0;  // in the clock units of the snapshot's records; 0 unknown
  std::uint16_t slot = 0;
};

struct MarkedSnapshot {
  // Its positions are its own: markers take some.
  ThreadSnapshot snapshot;
  // Of each moment, the record that stands for it; nothing when it is not in the history.
  std::vector<std::optional<Position>> places;
};

// `moments` are in the order of time, oldest first. Only runs that a moment can lie in are
// followed.
MarkedSnapshot put_markers(const ThreadSnapshot& snapshot, std::span<const MarkedMoment> moments);

}  // namespace tailtrace
