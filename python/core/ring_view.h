// RingView: the records of a ring file that nobody writes any more, in order and in place.
//
// A ring that went round begins in its middle. Its records are mapped twice, one behind the other,
// so that the oldest to the newest are one stretch of memory all the same: nothing is copied and
// opening costs the same for any size.
//
// Threading: immutable once made.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "decoder/record/ring.h"

namespace tailtrace::python {

// Consecutive records in memory that `owner` keeps.
struct RecordSpan {
  std::shared_ptr<const void> owner;
  std::span<const BranchRecord> records;
  Position first;
};

// A copy of what the ring holds now, whoever writes it.
RecordSpan copy_ring(const Ring& ring, const std::optional<BranchRecord>& closing = {});

// The records that `ring`, opened from `path`, holds. Rings of less than a page, which cannot be
// mapped twice, are copied. With a record that closes them there is one more, in this view alone.
// REQUIRES: the writer is done. Errors: kSystem.
Result<RecordSpan> view_ring(const Ring& ring, const std::string& path,
                             const std::optional<BranchRecord>& closing = {});

}  // namespace tailtrace::python
