// The calls of a history as what they are on a timeline: from where to where each lasted, with all
// that it called, in the order in which they are drawn.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "decoder/history/calls/calls.h"

namespace tailtrace {

// Deeper calls are left out of timelines.
constexpr std::int32_t kMaxTimelineLevel = 500;

// Items from where to where a call lasted.
struct CallSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t segment = 0;  // the first that is held of the call, or a gap
};

// Each call once, those that begin first before others, callers before what they call. Of two, one
// lies inside the other or they are apart: where stacks take turns, a call is there once for each
// stretch in which its stack was the one. What is at kMaxTimelineLevel or deeper is not there.
std::vector<CallSpan> call_spans(const CallHistory& calls);

// "main"; "??", "(gap)".
std::string span_name(const CallSegment& segment);

}  // namespace tailtrace
