// ring_view: the records of a ring, in order and in place.
//
// A ring that went round begins in its middle. Its records are mapped twice, one behind the other,
// so that the oldest to the newest are one stretch of memory all the same: nothing is copied and
// opening costs the same for any size. A writer that writes on overwrites it from the oldest on.
//
// Threading: immutable once made, but for what the writer does.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "decoder/record/ring.h"

namespace tailtrace {

// Consecutive records in memory that `owner` keeps.
struct RecordSpan {
  std::shared_ptr<const void> owner;
  std::span<const BranchRecord> records;
  Position first;
  // How many of the oldest may be overwritten by now; empty: nobody writes them.
  std::function<std::size_t()> overwritten = {};
};

// The records that a ring holds now, and behind them those that close it, in this view alone. They
// are copied where they cannot be mapped twice, as in rings of less than a page.
// REQUIRES: nobody writes it any more; two records that close it at most.
RecordSpan view_ring(const Ring& ring, std::span<const BranchRecord> closing = {});

// The same of one that may be written meanwhile.
RecordSpan view_written_ring(std::shared_ptr<const Ring> ring);

// The records of a view that are still there, copied, and the position of the first.
RecordRange copy_of(const RecordSpan& view);

}  // namespace tailtrace
