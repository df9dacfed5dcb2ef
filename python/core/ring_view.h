// RingView: the records of a ring file, in order and in place.
//
// A ring that went round begins in its middle. Its records are mapped twice, one behind the other,
// so that the oldest to the newest are one stretch of memory all the same: nothing is copied and
// opening costs the same for any size. A writer that writes on overwrites it from the oldest on.
//
// Threading: immutable once made, but for what the writer does.
#pragma once

#include <functional>
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
  // How many of the oldest may be overwritten by now; empty: nobody writes them.
  std::function<std::size_t()> overwritten = {};
};

// The records that `ring`, opened from `path`, holds now. Rings of less than a page, which cannot
// be mapped twice, are copied. Errors: kSystem.
Result<RecordSpan> view_ring(std::shared_ptr<const Ring> ring, const std::string& path,
                             bool is_written);

// The same of a ring that nobody writes any more, with one more that closes them, in this view
// alone.
Result<RecordSpan> view_closed_ring(const Ring& ring, const std::string& path,
                                    const BranchRecord& closing);

// The records of a view that are still there, copied, and the position of the first.
RecordRange copy_of(const RecordSpan& view);

}  // namespace tailtrace::python
