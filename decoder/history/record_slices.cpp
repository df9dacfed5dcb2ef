#include "decoder/history/record_slices.h"

#include <algorithm>

namespace tailtrace {
namespace {

// A slice begins at one of so many records, or the next older such place is tried.
constexpr std::uint64_t kCandidates = 256;
// Longer runs are not followed to find a place to cut.
constexpr std::uint64_t kMaxTriedRun_insns = 4096;
constexpr std::size_t kTriedRuns = 64;

}  // namespace

class RecordSlices::Reader final : public SegmentReader {
 public:
  explicit Reader(const RecordSlices& slices) : slices_(slices), runs_(*slices.code_, kTriedRuns) {}

  std::optional<Extent> cut(std::uint64_t end) override {
    if (end == 0) return std::nullopt;
    for (std::uint64_t from = end; from > slices_.slice_records_;) {
      from -= slices_.slice_records_;
      std::uint64_t last = std::min(from + kCandidates, end);
      for (std::uint64_t begin = from; begin < last; ++begin)
        if (entry(begin)) return Extent{begin, end};
    }
    return Extent{0, end};
  }

  SegmentRecords read(Extent extent) override {
    SegmentRecords segment;
    segment.records = slices_.records_.subspan(extent.begin, extent.end - extent.begin);
    segment.entry.epoch = slices_.first_epoch_;
    if (extent.begin == 0) return segment;
    segment.entry = *entry(extent.begin);
    segment.time_before = slices_.records_[extent.begin - 1].time;
    return segment;
  }

 private:
  // The state before a record, if the run before it tells that by itself.
  std::optional<FlowState> entry(std::uint64_t record) {
    if (record < 2) return std::nullopt;
    const BranchRecord& before = slices_.records_[record - 2];
    const BranchRecord& last = slices_.records_[record - 1];
    bool known = !before.to.is_null() && !last.to.is_null() && last.kind != RecordKind::kEnable &&
                 before.kind != RecordKind::kDisable && last.kind != RecordKind::kDisable;
    if (!known) return std::nullopt;
    FlowState state{before.to, slices_.epoch_at(record - 1), FlowState::Place::kRunning,
                    GapReason::kNone};
    Step step = runs_.advance(state, last, kMaxTriedRun_insns);
    if (step.has_gap || step.shown == 0) return std::nullopt;
    return state;
  }

  const RecordSlices& slices_;
  RunReader runs_;
};

RecordSlices::RecordSlices(std::shared_ptr<const void> owner, std::span<const BranchRecord> records,
                           const ThreadFrame& frame, std::size_t slice_records)
    : owner_(std::move(owner)),
      records_(records),
      code_(frame.code),
      first_epoch_(frame.first_epoch),
      slice_records_(slice_records) {
  // Epochs that no code is of need not be told apart.
  if (code_->newest() <= first_epoch_) return;
  for (std::uint64_t i = 0; i < records_.size(); ++i)
    if (records_[i].kind == RecordKind::kCodeChange) changes_.push_back(i);
}

Epoch RecordSlices::epoch_at(std::uint64_t record) const {
  auto behind = std::lower_bound(changes_.begin(), changes_.end(), record);
  Epoch epoch = first_epoch_;
  epoch.value += static_cast<decltype(epoch.value)>(behind - changes_.begin());
  return epoch;
}

std::unique_ptr<SegmentReader> RecordSlices::reader() const {
  return std::make_unique<Reader>(*this);
}

}  // namespace tailtrace
