// Readers and writers of ring files; RING.md has the format.
//
// Threading: one writer per ring; any number of readers in any process at the same time. A Ring or
// RingWriter object itself belongs to one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/record/ring_format.h"

namespace tailtrace {

// Consecutive records: records[i] has position first + i.
struct RecordRange {
  Position first;
  std::vector<BranchRecord> records;
};

// Capacities a ring may have: powers of two from kRingMinRecords to kRingMaxRecords.
// Errors: kUsage with the nearest capacity that can be used as the fix.
Result<std::uint64_t> check_ring_capacity(std::uint64_t records);

// A ring of this or another process, live or left behind by a dead one.
class Ring {
 public:
  // Errors: not a ring, of another version, cut short, or with a header that contradicts itself.
  static Result<Ring> open(const std::string& path);

  const RingHeader& header() const { return *header_; }
  ThreadId thread() const { return {header_->pid, header_->tid.load(std::memory_order_relaxed)}; }
  RingState state() const { return header_->state.load(std::memory_order_relaxed); }

  // One past the newest record. Only grows.
  Position head() const;
  // The oldest record that can still be read; equals head() when there is none. One slot of the
  // ring is always being written, so at most capacity - 1 records are held.
  Position oldest() const;

  // One record. Errors: kGone when it is overwritten, kUsage when it is not written yet.
  Result<BranchRecord> at(Position position) const;

  // The newest records, `limit` at most, none of them torn: those that the writer overwrote while
  // they were copied are left out.
  RecordRange newest(std::uint64_t limit) const;

  // All slots, where they are mapped: those of a whole number of pages begin with one.
  const BranchRecord* slots() const { return records_; }

 private:
  explicit Ring(MappedFile file);
  const BranchRecord& slot(std::uint64_t position) const;

  MappedFile file_;
  const RingHeader* header_ = nullptr;
  const BranchRecord* records_ = nullptr;
};

// Writes a ring file from inside this library (the step engine; tests).
class RingWriter {
 public:
  // Makes the file with mode 0600; it must not exist. REQUIRES: a checked capacity.
  static Result<RingWriter> create(const std::string& path, ThreadId thread, std::uint32_t slot,
                                   std::uint64_t capacity);
  RingWriter(RingWriter&&) noexcept;
  RingWriter& operator=(RingWriter&&) noexcept;
  ~RingWriter();

  void push(const BranchRecord& record);
  // The run being executed: `insns` instructions since the last record; the next one is at `next`.
  void set_open_run(std::uint64_t insns, Address next);

  Position head() const;

 private:
  RingWriter() = default;
  RingHeader* header_ = nullptr;
  BranchRecord* records_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tailtrace
