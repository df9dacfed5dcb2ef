// How much was written into an overwriting area of Intel BTS since somebody looked at it last. The
// hardware leaves an offset and no count: whether the area went round in between shows only in what
// it holds.
//
// Threading: pure functions over bytes.
#pragma once

#include <cstdint>

#include "decoder/base/bytes.h"

namespace tailtrace::bts {

enum class Growth {
  kContinued,  // all but what lies between the two heads is as it was, and that is proof enough
  kWentRound,  // something of it is not: records were overwritten that nobody has seen
  // It is as it was, and would be so after a round, too: a loop writes the same again and again, or
  // too little is left to tell.
  kUndecided,
};

// `seen` and `now` are what the area held at the two looks: as many bytes as are ever written, in
// whole records. The heads are offsets of records in them.
Growth growth_since(ByteSpan seen, std::uint64_t seen_head, ByteSpan now, std::uint64_t head);

}  // namespace tailtrace::bts
