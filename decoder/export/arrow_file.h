// Arrow file: threads' records as a table that Arrow's readers open: pandas, polars, DuckDB, R and
// others. ARROW.md draws it.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "decoder/export/sinks.h"
#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

class ArrowFile {
 public:
  explicit ArrowFile(ByteSink sink) : sink_(std::move(sink)) {}

  void begin();
  // The records of these items (range_records.h). REQUIRES: a range of the history, not empty.
  void add(const History& history, Range range);
  void end();

 private:
  // Where a batch lies in the file.
  struct Block {
    std::uint64_t offset_bytes, metadata_bytes, body_bytes;
  };
  void put(std::string_view bytes);
  std::uint64_t put_message(const Bytes& metadata);
  void put_batch(ThreadId thread, std::span<const BranchRecord> records);

  ByteSink sink_;
  bool more_ = true;
  std::uint64_t written_bytes_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace tailtrace
