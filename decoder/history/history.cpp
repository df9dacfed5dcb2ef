#include "decoder/history/history.h"

#include <algorithm>
#include <cassert>

#include "decoder/history/record_slices.h"
#include "decoder/history/runs.h"

namespace tailtrace {
namespace {

std::shared_ptr<const SegmentSource> slices_of(const std::shared_ptr<const ThreadSnapshot>& s) {
  assert(s != nullptr && s->code != nullptr);
  return std::make_shared<RecordSlices>(s, s->records, *s);
}

}  // namespace

History::History(std::shared_ptr<const ThreadSnapshot> snapshot)
    : History(*snapshot, slices_of(snapshot), HistorySettings{}) {}

History::History(ThreadFrame frame, std::shared_ptr<const SegmentSource> source,
                 const HistorySettings& options)
    : frame_(std::move(frame)),
      store_(std::make_shared<SegmentStore>(source, frame_.code, options.cache_bytes)),
      threads_(options.threads),
      stop_(options.stop),
      walked_(options.walked) {
  assert(frame_.code != nullptr);
  std::optional<std::uint64_t> records = source->record_count();
  if (options.numbers == HistorySettings::Numbers::kFromNewest) {
    newest_ = kNewest;
    record_end_.value = records ? frame_.first.value + *records : kNewest;
    return;
  }
  if (!store_->look_at_all(threads_, options.watch)) {
    store_->leave_out_older();
    frame_.complete = false;
  }
  SegmentStore::Totals found = store_->totals();
  newest_ = found.items;
  record_end_.value = frame_.first.value + records.value_or(found.records);
}

SegmentStore::Totals History::totals() const {
  if (!store_->look_at_all(threads_, [this](const auto&) { return !is_abandoned(); }))
    store_->leave_out_older();
  return store_->totals();
}

bool History::holds(std::uint64_t number) const {
  return number <= newest_ && store_->holding_item(newest_ - number + 1).has_value();
}

bool History::has_met(std::uint64_t number) const {
  return number <= newest_ && newest_ - number < store_->progress().found.items;
}

void History::each_gap(const std::function<void(GapReason)>& see) const {
  if (gaps() == 0) return;
  HistoryRuns runs(*this, oldest());
  for (HistoryRun run; runs.next(run);)
    if (run.step.has_gap) see(run.step.gap.reason);
}

void History::each_record(const std::function<void(const BranchRecord&)>& see) const {
  (void)totals();
  std::uint32_t open_insns = 0;  // of a run that goes on in the newer segment
  for (std::size_t index = store_->known(); index-- != 0 && !is_abandoned();) {
    const Placed place = *placed(index);
    const std::shared_ptr<const DecodedSegment>& segment = place.segment;
    come_to(place.first);
    for (std::size_t i = 0; i < segment->record_count(); ++i) {
      BranchRecord record = segment->records()[i];
      record.insns += std::exchange(open_insns, 0);
      see(record);
    }
    if (segment->seam() != nullptr) open_insns += segment->seam()->insns;
  }
}

ThreadSnapshot History::snapshot() const {
  ThreadSnapshot all{frame_, {}};
  all.records.reserve(record_count());
  each_record([&](const BranchRecord& record) { all.records.push_back(record); });
  return all;
}

std::optional<Address> History::stop() const {
  std::optional<Placed> last = placed(0);
  if (!last || last->segment->end().place == FlowState::Place::kUnknown) return std::nullopt;
  return last->segment->end().at;
}

std::optional<std::uint64_t> History::resolve(std::int64_t index) const {
  // Negated as unsigned: the smallest number has no positive counterpart.
  std::uint64_t back = 0 - static_cast<std::uint64_t>(index);
  if (index < 0 && back <= newest_ && holds(newest_ + 1 - back)) return newest_ + 1 - back;
  if (index > 0 && static_cast<std::uint64_t>(index) <= size())
    return oldest() - 1 + static_cast<std::uint64_t>(index);
  return std::nullopt;
}

std::optional<BranchRecord> History::record(Position position) const {
  if (position >= record_end_) return std::nullopt;
  std::uint64_t back = record_end_.value - position.value;
  std::optional<std::size_t> index = store_->holding_record(back);
  if (!index) return std::nullopt;
  std::optional<Placed> place = placed(*index);
  std::uint64_t offset = position.value - place->first_record;
  BranchRecord record = place->segment->records()[offset];
  // Its run may have begun in older segments.
  while (offset == 0 && goes_on(place->index)) {
    place = placed(place->index + 1);
    record.insns += place->segment->seam()->insns;
    if (place->segment->record_count() != 0) break;
  }
  return record;
}

std::optional<History::Placed> History::placed(std::size_t index) const {
  std::optional<SegmentStore::Facts> facts = store_->facts(index);
  if (!facts) return std::nullopt;
  Placed place;
  place.segment = store_->segment(index);
  place.index = index;
  place.first = newest_ - facts->newer_items - facts->items + 1;
  place.first_record = record_end_.value - facts->newer_records - facts->records;
  return place;
}

bool History::goes_on(std::size_t index) const {
  std::optional<SegmentStore::Facts> older = store_->facts(index + 1);
  return older && older->has_seam;
}

std::optional<History::Placed> History::holding(std::uint64_t number) const {
  if (number == 0 || number > newest_) return std::nullopt;
  std::optional<std::size_t> index = store_->holding_item(newest_ - number + 1);
  return index ? placed(*index) : std::nullopt;
}

}  // namespace tailtrace
