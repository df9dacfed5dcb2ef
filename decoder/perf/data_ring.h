// Data rings: where the kernel writes records. This reads back what an overwritten ring still
// holds, for both directions in which a ring can be written; RINGS.md has the pictures.
//
// Threading: pure functions over bytes. Whoever calls them makes sure that nobody writes meanwhile
// (the thread is stopped and off its CPU, or the output is paused).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/perf/abi.h"

namespace tailtrace::perf {

// Records copied out of a ring, in the order of time, each in one piece.
class RecordList {
 public:
  std::size_t size() const { return offsets_.size(); }
  bool empty() const { return offsets_.empty(); }
  // A record with its header. REQUIRES: i < size().
  ByteSpan operator[](std::size_t i) const;
  RecordHeader header(std::size_t i) const { return load<RecordHeader>((*this)[i]); }

 private:
  friend struct RecordListBuilder;
  Bytes bytes_;
  std::vector<std::size_t> offsets_;
};

// A forward ring in which every record has the same size. It has no marks: record k from the end
// ends at head - (k - 1) * size. Nothing is copied but the record that the ring's seam cuts: it
// shows the ring, as long as nobody writes into that.
struct FixedRecords {
  // How many were written before the oldest one held here; a lower bound once a stranger was there.
  std::uint64_t first = 0;
  std::size_t count = 0;
  std::uint16_t size_bytes = 0;
  // Whole records, headers included, oldest first: those up to the seam, and those behind it; and
  // the one between, where the seam cuts one.
  ByteSpan older, newer;
  Bytes cut;

  // Something else stood in the ring, and behind it nothing can be found: what it was.
  std::optional<RecordHeader> stranger;

  ByteSpan operator[](std::size_t i) const {
    if (std::size_t at = i * size_bytes; at < older.size()) return older.subspan(at, size_bytes);
    std::size_t at = i * size_bytes - older.size();
    if (at < cut.size()) return cut;
    return newer.subspan(at - cut.size(), size_bytes);
  }
};

// The newest records of an overwriting forward ring, `limit` at most. `head` is data_head: the
// bytes written since the beginning. A record counts when its header has the type and size of
// `like`. Errors: kBadInput when the ring's size is no power of two or `like` has no size.
Result<FixedRecords> read_fixed_records(ByteSpan ring, std::uint64_t head, RecordHeader like,
                                        std::uint64_t limit);

// All that a `write_backward` ring holds. `head` is data_head: it starts at 0 and decreases, so
// that -head bytes were ever written. The oldest record is left out when its end was overwritten.
// A LOST record, which such a ring shows behind the record it precedes, is put in its place.
// Errors: kBadInput when the ring's size is no power of two, or a record's size is impossible in a
// ring that was not overwritten.
Result<RecordList> read_backward_ring(ByteSpan ring, std::uint64_t head);

// The index of the oldest record among the newest `bytes` bytes of a list: those are whole.
std::size_t first_of_newest(const RecordList& records, std::uint64_t bytes);

// What a ring that is not overwritten holds between its tail and its head.
// Errors: kBadInput when the two are too far apart or a record's size is impossible.
Result<RecordList> read_forward_ring(ByteSpan ring, std::uint64_t tail, std::uint64_t head);

}  // namespace tailtrace::perf
