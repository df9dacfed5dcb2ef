#include "plugin/engines/perf/gather_branches.h"

#include <memory>

#include "decoder/bts/branch_flow.h"
#include "decoder/bts/stack_join.h"

namespace tailtrace::perf {
namespace {

// The epochs of a process's code, one after the other.
class CodeByTime {
 public:
  CodeByTime(const ProcessCode& code, std::uint64_t tsc) : code_(code) {
    (void)begin_until(tsc);
    first_ = read();
  }

  Epoch first() const { return first_; }
  CodeReader& reader() { return *reader_; }

  // Goes on to what was there at that time; the flow reads with it from here on.
  void go_to(std::uint64_t tsc, bts::BranchFlow& flow) {
    const std::uint32_t more = begin_until(tsc);
    if (more == 0) return;
    const std::unique_ptr<CodeReader> before = std::move(reader_);
    read();
    flow.set_code(*reader_, std::nullopt, more);
  }

 private:
  std::uint32_t begin_until(std::uint64_t tsc) {
    const auto& begins = code_.begins();
    std::uint32_t more = 0;
    for (; begun_ < begins.size() && begins[begun_].time <= tsc; ++begun_) ++more;
    return more;
  }
  Epoch read() {
    reader_ = std::make_unique<CodeReader>(*code_.image());
    reader_->set_epoch({static_cast<std::uint32_t>(begun_)});
    return reader_->epoch();
  }

  const ProcessCode& code_;
  std::size_t begun_ = 0;  // of the epochs but the first
  Epoch first_;
  std::unique_ptr<CodeReader> reader_;
};

// Stacks overlap: what of a newer one is new, and whether something may be missing before it.
class Stacks {
 public:
  explicit Stacks(std::size_t most_between) : most_between_(most_between) {}

  void add(const bts::Share& share, bts::BranchFlow& flow) {
    if (share.lost_before) last_ = {};
    if (share.batch->branches.empty()) return;
    const std::span<const bts::Branch> stack = share.batch->branches;
    const bts::Join join = bts::join_stacks(last_, stack, most_between_);
    if (!join.exact) flow.lost(GapCause::kLost);
    for (const bts::Branch& branch : stack.last(join.added)) flow.add(branch);
    last_ = stack;
  }

 private:
  std::size_t most_between_;
  std::span<const bts::Branch> last_;
};

void add_samples(const bts::Share& share, bts::BranchFlow& flow) {
  if (share.lost_before) flow.lost(*share.lost_before);
  for (const bts::Branch& branch : share.batch->branches) flow.add(branch);
}

}  // namespace

ThreadSnapshot gather_branches(const BranchesOfThread& of, const TscOf& tsc_of,
                               std::uint64_t limit) {
  const bool all_branches = of.most_between_stacks == 0;
  CodeByTime code(*of.code, of.shares.empty() ? 0 : tsc_of(of.shares.front().batch->time_ns));
  bts::BranchFlow flow(code.reader());
  Stacks stacks(of.most_between_stacks);
  if (of.start && all_branches) flow.begin_at(*of.start);
  for (const bts::Share& share : of.shares) {
    code.go_to(tsc_of(share.batch->time_ns), flow);
    all_branches ? add_samples(share, flow) : stacks.add(share, flow);
  }
  ThreadSnapshot snapshot;
  snapshot.thread = of.thread;
  snapshot.code = of.code->image();
  snapshot.former_maps = of.code->former_maps();
  snapshot.first_epoch = code.first();
  snapshot.first = {flow.first()};
  snapshot.complete = flow.complete() && of.start && all_branches;
  snapshot.records = flow.records();
  keep_newest(snapshot, limit);
  const auto closing = flow.closing(of.stop.value_or(Address{}), all_branches);
  snapshot.records.insert(snapshot.records.end(), closing.begin(), closing.end());
  return snapshot;
}

}  // namespace tailtrace::perf
