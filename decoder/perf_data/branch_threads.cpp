// The part of PerfRecording that reads branches: Intel BTS, and stacks of last branches in samples.
#include <algorithm>

#include "decoder/bts/branch_flow.h"
#include "decoder/bts/stack_join.h"
#include "decoder/perf_data/recording.h"

namespace tailtrace::perf {
namespace {

// A flow through the code of one process, as the code was when a branch was taken.
class TimedFlow {
 public:
  explicit TimedFlow(const RecordedPrograms::Program& program)
      : program_(program), code_(*program.image), flow_(code_) {}

  // What comes now was executed then.
  void at(std::uint64_t time) {
    std::uint32_t begun = 0;
    for (; next_ < program_.begins.size() && program_.begins[next_].time <= time; ++next_) {
      ++begun;
      code_.set_epoch(program_.begins[next_].epoch);
    }
    if (begun == 0) return;
    if (any_)
      flow_.set_code(code_, newest_to_, begun);
    else
      first_epoch_.value += begun;
  }

  void add(const bts::Branch& branch) {
    any_ = true;
    stands_ = !branch.to.is_kernel();
    if (stands_) newest_to_ = branch.to;
    flow_.add(branch);
  }
  void lost(GapCause cause) { flow_.lost(cause); }
  void keep(std::uint64_t limit) { flow_.keep(limit); }

  // Fills in records, and where they begin.
  ThreadSnapshot finish(ThreadFrame& frame, bool is_complete) {
    ThreadSnapshot snapshot;
    snapshot.records = flow_.records();
    if (any_)
      for (const BranchRecord& record : flow_.closing(newest_to_, stands_))
        snapshot.records.push_back(record);
    frame.first = {flow_.first()};
    frame.first_epoch = first_epoch_;
    frame.complete = is_complete && flow_.complete();
    return snapshot;
  }

 private:
  const RecordedPrograms::Program& program_;
  CodeReader code_;
  bts::BranchFlow flow_;
  std::size_t next_ = 0;  // epoch to begin
  Epoch first_epoch_;
  bool any_ = false;
  Address newest_to_;
  bool stands_ = false;  // there
};

// The kernel fills what is left of a page with zeros; a record begins where they end.
template <class F>
void each_bts_record(ByteSpan bytes, F f) {
  for (std::size_t at = 0; at + kBtsRecordSize_bytes <= bytes.size();) {
    const bts::Branch branch{{load<std::uint64_t>(bytes, at)},
                             {load<std::uint64_t>(bytes, at + 8)}};
    const bool is_padding = branch.from.is_null() && branch.to.is_null();
    if (!is_padding) f(branch);
    at += is_padding ? 8 : kBtsRecordSize_bytes;
  }
}

// Bytes [begin, begin + size) of what was ever written into an area, where they are in one run.
ByteSpan bytes_of(const AuxQueue& queue, std::uint64_t begin, std::uint64_t size) {
  auto after = std::upper_bound(
      queue.runs.begin(), queue.runs.end(), begin,
      [](std::uint64_t offset, const AuxRun& run) { return offset < run.offset_bytes; });
  if (after == queue.runs.begin()) return {};
  const AuxRun& run = *std::prev(after);
  const std::uint64_t inside = begin - run.offset_bytes;
  if (inside > run.bytes.size() || size > run.bytes.size() - inside) return {};
  return run.bytes.subspan(inside, size);
}

// A sample comes some branches late.
constexpr std::uint64_t kSkid_branches = 8;

// The most branches that can have come between two samples; nobody knows where the event counts
// something else.
std::size_t most_between(const EventAttr& attr) {
  constexpr std::uint32_t kHardware = 0;
  constexpr std::uint64_t kBranchInstructions = 4;
  const bool counts_branches =
      attr.type == kHardware && attr.config == kBranchInstructions && (attr.flags & kAttrFreq) == 0;
  if (!counts_branches || attr.sample_period > ~0u) return ~0u;
  return attr.sample_period + kSkid_branches;
}

}  // namespace

// The kernel tells of each stretch that a thread was traced for, and where its records lie.
Result<void> PerfRecording::open_bts(const Thread& thread, std::uint64_t limit,
                                     OpenedThread& opened) const {
  TimedFlow flow(programs_.of(thread.thread.pid));
  auto add = [&](ByteSpan bytes) {
    each_bts_record(bytes, [&](const bts::Branch& branch) { flow.add(branch); });
    flow.keep(limit);
  };
  auto own = queues_of_threads_.find(thread.thread.tid);
  if (is_snapshot() && own != queues_of_threads_.end()) {
    flow.at(~0ull);
    for (const AuxQueue* queue : own->second)
      for (const AuxRun& run : queue->runs) {
        if (run.lost_before != 0) flow.lost(pt::cause_of_hole(run.lost_before));
        add(run.bytes);
      }
  }
  auto told_of = told_.find(thread.thread.tid);
  if (!is_snapshot() && told_of != told_.end())
    for (const AuxTold& told : told_of->second) {
      const AuxQueue* queue = nullptr;
      if (own != queues_of_threads_.end())
        queue = own->second.front();
      else if (auto cpu = queues_of_cpus_.find(told.cpu); cpu != queues_of_cpus_.end())
        queue = cpu->second;
      flow.at(ticks(told.time_ns));
      ByteSpan bytes;
      if (queue != nullptr)
        bytes = bytes_of(*queue, told.event.offset_bytes, told.event.size_bytes);
      if (bytes.size() != told.event.size_bytes) flow.lost(GapCause::kLost);
      add(bytes);
      constexpr std::uint64_t kHoles = kAuxTruncated | kAuxPartial | kAuxCollision;
      if ((told.event.flags & kHoles) != 0) flow.lost(pt::cause_of_hole(told.event.flags));
    }
  put_records(opened, flow.finish(opened.frame, !is_snapshot()), limit);
  return {};
}

Result<void> PerfRecording::open_stacks(const Thread& thread, std::uint64_t limit,
                                        OpenedThread& opened) const {
  TimedFlow flow(programs_.of(thread.thread.pid));
  std::vector<bts::Branch> last;
  for (std::uint32_t index : stacks_.at(thread.thread.tid)) {
    const RecordRef& ref = data_.records[index];
    auto record = data_.parse(ref);
    auto* sample = record ? std::get_if<Sample>(&record->body) : nullptr;
    if (sample == nullptr) continue;
    flow.at(ticks(ref.time_ns));
    std::vector<bts::Branch> stack = bts::read_branch_stack(*sample);
    bts::Join join = bts::join_stacks(last, stack, most_between(data_.attrs[ref.attr]));
    if (!join.exact) flow.lost(GapCause::kLost);
    for (std::size_t i = stack.size() - join.added; i < stack.size(); ++i) flow.add(stack[i]);
    flow.keep(limit);
    last = std::move(stack);
  }
  put_records(opened, flow.finish(opened.frame, false), limit);
  return {};
}

}  // namespace tailtrace::perf
