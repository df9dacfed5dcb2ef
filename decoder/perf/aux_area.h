// The AUX area: the buffer that tracing hardware fills by itself. This puts what an overwriting
// area holds into the order in which it was written; RINGS.md has the picture.
//
// Threading: pure functions over bytes. Whoever calls them makes sure that nobody writes meanwhile
// (the only traced thread is stopped and off its CPU, or the event is disabled).
#pragma once

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"

namespace tailtrace::perf {

// What `aux_head` in the control page means; it depends on the driver and on how the area was
// mapped.
enum class AuxHead {
  // intel_pt, mapped read-only: the offset of the next byte to be written, 0..size; size is 0.
  kOffset,
  // intel_bts, mapped read-only: the same in 24-byte records; the last size % 24 bytes are never
  // written, and the head may stand on them instead of on 0.
  kRecordOffset,
  // Any driver, mapped writable: bytes written since the beginning; only grows.
  kAbsolute,
};

constexpr std::size_t kBtsRecordSize_bytes = 24;

// Bytes in the order they were written, still in place: all of `older`, then all of `newer`.
struct AuxView {
  ByteSpan older;
  ByteSpan newer;

  std::size_t size_bytes() const { return older.size() + newer.size(); }
  Bytes joined() const;
};

// The view of a whole overwriting area. Nobody knows whether it went round: bytes that were never
// written are zero and come first.
// Errors: kBadInput for a head that the convention does not allow.
Result<AuxView> order_aux_area(ByteSpan area, std::uint64_t head, AuxHead convention);

// What of a writable area lies between its tail (the first byte not yet taken) and its head.
// Errors: kBadInput when the two are further apart than the area is large.
Result<AuxView> unread_aux_area(ByteSpan area, std::uint64_t tail, std::uint64_t head);

// The same view without the zeros that it begins with. For Intel PT, whose padding is zero.
AuxView without_leading_zeros(AuxView view);

}  // namespace tailtrace::perf
