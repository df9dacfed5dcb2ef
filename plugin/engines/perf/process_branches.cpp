// What a ProcessRecording does with branches, where Intel PT goes other ways.
#include <algorithm>

#include "plugin/engines/perf/branch_events.h"
#include "plugin/engines/perf/gather_branches.h"
#include "plugin/engines/perf/process_recording.h"

namespace tailtrace::perf {

// Two threads whose events were all inherited, the one's from the other's or both from a third's.
bool ProcessRecording::may_change_places(ThreadId one, ThreadId other,
                                         std::uint64_t time_ns) const {
  auto never_does = [&](ThreadId thread) {
    auto anchored = anchored_.find(thread.tid);
    return anchored != anchored_.end() && anchored->second <= time_ns;
  };
  if (never_does(one) || never_does(other)) return false;
  return !apart_.contains(one.tid) || !apart_.contains(other.tid);
}

// Of the ring that all events of a CPU write into.
RecordFormat ProcessRecording::format() const {
  if (area_) return {kSidebandFields, true, 0, 0};
  const perf_event_attr attr = branch_stack_attr(config_);
  return {attr.sample_type | kSidebandFields, false, attr.branch_sample_type, 0};
}

Result<bts::CpuBranches> ProcessRecording::read_written(const Cpu& cpu) const {
  const Event& event = cpu.trace.front();
  const std::uint64_t head = event.data_head();
  if (hardware_ == Hardware::kBts && !area_) {
    auto records = read_fixed_records(event.ring(), head,
                                      {kRecordSample, 0, bts::kOwnedSampleSize_bytes}, ~0ull);
    if (!records) return fail(std::move(records.error()));
    return bts::read_cpu_samples(*records);
  }
  auto records = read_backward_ring(event.ring(), head);
  if (!records) return fail(std::move(records.error()));
  const bool overwritten = 0 - head > event.ring().size();
  if (area_)
    return bts::read_cpu_area({event.aux(), event.aux_head(), !overwritten}, *records, format());
  return bts::read_cpu_stacks(*records, format(), overwritten);
}

Result<bts::CpuBranches> ProcessRecording::read_branches(std::size_t cpu) const {
  auto branches = read_written(cpus_[cpu]);
  if (!branches) return branches;
  auto slots = read_slots(cpus_[cpu]);
  if (!slots) return fail(std::move(slots.error()));
  const auto may = [&](ThreadId one, ThreadId other, std::uint64_t time_ns) {
    return may_change_places(one, other, time_ns);
  };
  if (hardware_ == Hardware::kLbr) {
    bts::part_stacks(*branches, slots->slots, slots->begin_ns, may);
    return branches;
  }
  bts::take_away_mixed(*branches, slots->slots, slots->begin_ns, may);
  bts::note_pauses(*branches, slots->slots, slots->begin_ns,
                   keeper_ ? keeper_->pauses(cpu) : pauses_);
  return branches;
}

// What threads that run do meanwhile is not recorded, and told as lost the next time.
Result<std::vector<bts::CpuBranches>> ProcessRecording::read_all_branches() {
  auto held = keeper_ ? keeper_->hold() : std::unique_lock<std::mutex>();
  const std::uint64_t since_ns = now_ns();
  AllQuiet quiet = hold();
  if (keeper_) keeper_->make_room();
  Result<std::vector<bts::CpuBranches>> all;
  for (std::size_t i = 0; i < cpus_.size() && all; ++i) {
    auto branches = read_branches(i);
    if (branches)
      all->push_back(std::move(*branches));
    else
      all = fail(std::move(branches.error()));
  }
  quiet.clear();
  if (keeper_)
    keeper_->went_on(since_ns, now_ns());
  else if (since_ns != 0)
    pauses_.push_back({since_ns, now_ns()});
  return all;
}

Result<std::vector<ThreadSnapshot>> ProcessRecording::branch_snapshot(std::uint64_t limit) {
  auto cpus = read_all_branches();
  if (!cpus) return fail(std::move(cpus.error()));
  const bool timed = clock_.mult != 0;
  const TscOf tsc_of = [&](std::uint64_t ns) { return timed ? clock_.to_tsc(ns) : ~0ull; };
  const auto most = hardware_ == Hardware::kLbr ? most_between_stacks(config_) : 0;
  std::vector<ThreadSnapshot> snapshots;
  for (const auto& [thread, shares] : bts::shares_by_thread(*cpus)) {
    auto start = starts_.find(thread);
    snapshots.push_back(
        gather_branches({thread, shares, &codes_.of(thread.pid),
                         start == starts_.end() ? std::nullopt : std::optional(start->second),
                         stop_of(thread), most},
                        tsc_of, limit));
    snapshots.back().engine = hardware_ == Hardware::kBts ? "bts" : "lbr";
  }
  return snapshots;
}

}  // namespace tailtrace::perf
