// Which histories are long: so long that whoever wants to see the newest part of one should not
// wait until all of it is counted.
//
// Threading: a pure function.
#pragma once

#include "decoder/history/segment_source.h"

namespace tailtrace {

// Counting takes some 50 ns a record. Of sources that do not know how many they have, of bytes.
constexpr std::uint64_t kLongHistory = std::uint64_t{1} << 20;

inline bool is_long(const SegmentSource& source) {
  return source.record_count().value_or(source.size()) > kLongHistory;
}

}  // namespace tailtrace
