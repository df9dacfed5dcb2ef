// Pauses: where a recorded thread stood while the debugger looked at the program. A processor's
// trace is switched off for that time and shows it, and so does what LLDB is given of ours; a pause
// also says when the instructions around it were executed.
//
// Threading: pure functions; values.
#pragma once

#include <cstdint>
#include <span>

#include "plugin/server/recording/snapshot_cut.h"

namespace tailtrace {

struct Pause {
  HistoryMark at;
  std::uint64_t stopped = 0, resumed = 0;  // when, in the clock of the records; 0: not known
};

// Shows the pauses, oldest first, in a snapshot that begins at `begin` (since() of it): each ends
// the stretch at hand and begins another one, unless nothing was executed since the one before.
// Pauses that lie before the snapshot are left out. Its positions are no longer those of a ring.
void insert_pauses(ThreadSnapshot& snapshot, const HistoryMark& begin,
                   std::span<const Pause> pauses);

}  // namespace tailtrace
