// SegmentSource: where a history's records come from, in segments that can be read on their own.
//
// A source is a stretch of units (bytes of a trace, or records), oldest first. It is cut into
// segments from its newest end on, and what a segment holds does not depend on which others were
// read: a history reads the newest one first, and the others when somebody asks for them.
//
// Threading: a source is immutable and shared; make a reader for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decoder/history/run.h"

namespace tailtrace {

// Units [begin, end) of a source.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SegmentRecords {
  std::span<const BranchRecord> records;
  std::vector<BranchRecord> made;  // holds them, unless they lie in the source
  FlowState entry;                 // before the first of them
  std::uint64_t time_before = 0;   // the last time known before the first of them; 0 unknown
  // The last record is none of the source's: it ends a run that the first record of the next newer
  // segment goes on with. The instructions before it are those that the newer segment's record does
  // not count. It is asynchronous, and `from` and `to` are the instruction the segments share.
  bool has_seam = false;
  // The records were made by following the very code that they are read with: runs that end with a
  // near branch need not be held against it again.
  bool follows_code = false;
};

class SegmentReader {
 public:
  virtual ~SegmentReader() = default;

  // The newest segment that ends at `end`: the source's size, or where another segment begins.
  // Nothing when there is none.
  virtual std::optional<Extent> cut(std::uint64_t end) = 0;

  // REQUIRES: cut() made the extent.
  virtual SegmentRecords read(Extent extent) = 0;
};

class SegmentSource {
 public:
  virtual ~SegmentSource() = default;

  // Units.
  virtual std::uint64_t size() const = 0;

  // How many records there are, where that is known without reading them.
  virtual std::optional<std::uint64_t> record_count() const = 0;

  // REQUIRES: the source outlives the reader.
  virtual std::unique_ptr<SegmentReader> reader() const = 0;
};

}  // namespace tailtrace
