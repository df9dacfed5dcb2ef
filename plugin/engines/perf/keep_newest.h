// What is left of a snapshot when only its newest records are wanted.
//
// Threading: pure functions.
#pragma once

#include "decoder/history/snapshot.h"

namespace tailtrace::perf {

// Drops the oldest records beyond `limit`; positions and epochs go on to be right.
void keep_newest(ThreadSnapshot& snapshot, std::uint64_t limit);

}  // namespace tailtrace::perf
