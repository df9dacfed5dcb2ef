// RecordSlices: records that are there already, in memory or in a mapped file, as segments.
//
// A slice begins behind a run that surely agrees with the code: what is known of the flow there is
// then the same whatever came before.
//
// Threading: immutable.
#pragma once

#include "decoder/history/segment_source.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

class RecordSlices final : public SegmentSource {
 public:
  static constexpr std::size_t kSlice_records = std::size_t{1} << 16;

  // `owner` keeps the records alive. Where the code changes in between, all records are looked at.
  RecordSlices(std::shared_ptr<const void> owner, std::span<const BranchRecord> records,
               const ThreadFrame& frame, std::size_t slice_records = kSlice_records);

  std::uint64_t size() const override { return records_.size(); }
  std::optional<std::uint64_t> record_count() const override { return records_.size(); }
  std::unique_ptr<SegmentReader> reader() const override;

 private:
  class Reader;

  // Of the code before a record.
  Epoch epoch_at(std::uint64_t record) const;

  std::shared_ptr<const void> owner_;
  std::span<const BranchRecord> records_;
  std::shared_ptr<const CodeImage> code_;
  Epoch first_epoch_;
  std::size_t slice_records_;
  std::vector<std::uint64_t> changes_;  // records that change the code, in order
};

}  // namespace tailtrace
