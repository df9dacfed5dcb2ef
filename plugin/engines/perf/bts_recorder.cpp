// Recorders of every branch: the AUX area of intel_bts, and branch samples in a data ring.
#include <algorithm>

#include "decoder/bts/area_growth.h"
#include "decoder/bts/branch_list.h"
#include "decoder/pt/tail.h"
#include "plugin/engines/perf/aux_event.h"
#include "plugin/engines/perf/branch_events.h"
#include "plugin/engines/perf/flow_recorder.h"
#include "plugin/engines/perf/pmu.h"

namespace tailtrace::perf {
namespace {

// The area is one piece of physical memory, which kernels give out up to this size.
constexpr std::uint64_t kMaxBtsArea_bytes = 4u << 20;

class BtsAreaRecorder final : public FlowRecorder {
 public:
  BtsAreaRecorder(Event event, std::optional<Event> clock, std::size_t keep,
                  std::optional<Address> start)
      : FlowRecorder(std::move(event), keep, start),
        clock_(std::move(clock)),
        seen_(event_.aux().size() - event_.aux().size() % kBtsRecordSize_bytes) {}

 protected:
  Result<void> take(bts::BranchFlow& flow) override {
    const ByteSpan area = event_.aux();
    const std::uint64_t capacity = area.size() - area.size() % kBtsRecordSize_bytes;
    const std::uint64_t head = event_.aux_head();
    if (auto view = order_aux_area(area, head, AuxHead::kRecordOffset); !view)
      return fail(std::move(view.error()));
    const std::uint64_t new_bytes = (head + capacity - seen_head_) % capacity;
    const bts::Growth growth = growth_until(head % capacity);
    if (growth != bts::Growth::kContinued) flow.lost(GapCause::kOverwritten);
    auto holes = read_aux_holes(event_, seen_ring_head_ - event_.data_head(), capacity);
    if (!holes) return fail(std::move(holes.error()));
    seen_ring_head_ = event_.data_head();
    // All of it is new; else what is behind the old head is, and the rest may have been shown.
    std::uint64_t before_head = growth == bts::Growth::kWentRound ? capacity : new_bytes;
    for (const AuxHole& hole : *holes) {
      if (hole.before_head_bytes > before_head) continue;
      add(flow, head, before_head, hole.before_head_bytes);
      flow.lost(pt::cause_of_hole(hole.flags));
      before_head = hole.before_head_bytes;
    }
    add(flow, head, before_head, 0);
    std::memcpy(seen_.data(), area.data(), capacity);
    seen_head_ = head % capacity;
    return {};
  }

 private:
  // What lies between two distances from the head.
  void add(bts::BranchFlow& flow, std::uint64_t head, std::uint64_t from, std::uint64_t to) {
    const ByteSpan area = event_.aux();
    const std::uint64_t capacity = area.size() - area.size() % kBtsRecordSize_bytes;
    auto view = order_aux_area(area, (head + capacity - to) % capacity, AuxHead::kRecordOffset);
    if (!view) return flow.lost(GapCause::kBadTrace);
    auto list = bts::read_bts_area(*view, (from - to) / kBtsRecordSize_bytes);
    for (const bts::Branch& branch : list.branches) flow.add(branch);
  }

  // Nobody tells how often the area went round since it was seen last. Where what it holds does
  // not say either, the thread's time on a CPU may: it was too short for a whole round.
  bts::Growth growth_until(std::uint64_t head) {
    constexpr std::uint64_t kLeastForARecord_ns = 1;  // three stores and the branch
    auto now_ns = clock_ ? clock_->count() : Result<std::uint64_t>(fail(ErrorCode::kGone, "clock"));
    const std::uint64_t ran_ns = now_ns ? *now_ns - seen_ns_ : ~0ull;
    if (now_ns) seen_ns_ = *now_ns;
    const auto growth =
        bts::growth_since(seen_, seen_head_, event_.aux().first(seen_.size()), head);
    const bool too_short = ran_ns < seen_.size() / kBtsRecordSize_bytes * kLeastForARecord_ns;
    return growth == bts::Growth::kUndecided && too_short ? bts::Growth::kContinued : growth;
  }

  std::optional<Event> clock_;  // of the thread's time on a CPU; not every machine lets us have it
  Bytes seen_;  // the area as it was last time; zeros at first, as the kernel gives it out
  std::uint64_t seen_head_ = 0, seen_ring_head_ = 0, seen_ns_ = 0;
};

class BtsSampleRecorder final : public FlowRecorder {
 public:
  BtsSampleRecorder(Event event, std::size_t keep, std::optional<Address> start)
      : FlowRecorder(std::move(event), keep, start) {}

 protected:
  Result<void> take(bts::BranchFlow& flow) override {
    const std::uint64_t head = event_.data_head();
    const std::uint64_t added = (head - seen_head_) / bts::kBtsSampleSize_bytes;
    auto records = read_fixed_records(event_.ring(), head,
                                      {kRecordSample, 0, bts::kBtsSampleSize_bytes}, added);
    if (!records) return fail(std::move(records.error()));
    if (records->stranger)
      flow.lost(GapCause::kLost);
    else if (records->count < added)
      flow.lost(GapCause::kOverwritten);
    for (const bts::Branch& branch : bts::read_bts_samples(*records).branches) flow.add(branch);
    seen_head_ = head;
    return {};
  }

 private:
  std::uint64_t seen_head_ = 0;
};

}  // namespace

Recorders record_bts_area(Kernel& kernel, const PerfConfig& config, ThreadId thread,
                          std::optional<Address> start) {
  auto pmu = read_pmu(kernel.root(), "intel_bts");
  if (!pmu)
    return fail(explain(kernel, {Purpose::kBtsArea, Step::kOpen, ENOENT, {thread.tid, -1}}));
  perf_event_attr attr = plain_attr(pmu->type, 0);
  attr.disabled = config.trial ? 1 : 0;
  std::uint64_t size = std::min(buffer_for(config, kBtsRecordSize_bytes), kMaxBtsArea_bytes);
  auto event = open_aux_event(kernel, Purpose::kBtsArea, attr, {thread.tid, -1}, size);
  if (!event) return fail(std::move(event.error()));
  perf_event_attr clock = plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
  auto timed = Event::open(kernel, Purpose::kSideband, clock, {thread.tid, -1});
  return std::make_unique<BtsAreaRecorder>(std::move(*event),
                                           timed ? std::optional(std::move(*timed)) : std::nullopt,
                                           config.records.ring_records, start);
}

Recorders record_bts_samples(Kernel& kernel, const PerfConfig& config, ThreadId thread,
                             std::optional<Address> start) {
  perf_event_attr attr = branch_sample_attr();
  attr.disabled = config.trial ? 1 : 0;
  auto event = Event::open(kernel, Purpose::kBtsSamples, attr, {thread.tid, -1});
  if (!event) return fail(std::move(event.error()));
  if (auto ok = event->map_largest_ring(buffer_for(config, bts::kBtsSampleSize_bytes),
                                        Event::WhenFull::kOverwrite);
      !ok)
    return fail(std::move(ok.error()));
  return std::make_unique<BtsSampleRecorder>(std::move(*event), config.records.ring_records, start);
}

}  // namespace tailtrace::perf
