// Joins snapshots of one thread, taken one after the other, into one longer history.
//
// A ring keeps the newest records only, so what one snapshot held may be gone in the next. Records
// have stable positions: where two snapshots have some in common, or one begins where the other
// ends, they are put together, and nothing is doubled or lost. Where they have not, a gap says so.
//
// Threading: a pure function.
#pragma once

#include "decoder/base/result.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

// What both hold, oldest first. Positions are those of `newer`, as long as there are so many below
// them; of `older` as well, unless there is a gap between them, or the code is told to have changed
// where they meet, which takes a record.
// Errors: kUsage when they are of different threads or engines.
Result<ThreadSnapshot> join_snapshots(const ThreadSnapshot& older, const ThreadSnapshot& newer);

}  // namespace tailtrace
