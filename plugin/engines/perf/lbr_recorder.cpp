// Recorder of last branch records: a short tail where the processor has nothing longer. It ends at
// the last sample, not at the stop; between stacks that do not join there is a gap.
#include <algorithm>
#include <charconv>

#include "decoder/bts/branch_list.h"
#include "decoder/bts/stack_join.h"
#include "decoder/perf/events.h"
#include "plugin/engines/perf/flow_recorder.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kDefaultRing_bytes = 256u << 10;
// A sample comes some branches late.
constexpr std::uint64_t kSkid_branches = 8;

class LbrRecorder final : public FlowRecorder {
 public:
  LbrRecorder(Event event, const PerfConfig& config, const RecordFormat& format)
      : FlowRecorder(std::move(event), config.records.ring_records, std::nullopt),
        format_(format),
        most_new_(config.lbr_period + kSkid_branches) {}

 protected:
  bool is_up_to_date() const override { return false; }

  Result<void> take(bts::BranchFlow& flow) override {
    const std::uint64_t head = event_.data_head();
    auto records = read_backward_ring(event_.ring(), head);
    if (!records) return fail(std::move(records.error()));
    for (std::size_t i = first_of_newest(*records, seen_head_ - head); i < records->size(); ++i) {
      auto record = parse_record((*records)[i], format_);
      if (!record) return fail(std::move(record.error()));
      if (auto* sample = std::get_if<Sample>(&record->body))
        add_stack(flow, bts::read_branch_stack(*sample));
      else if (std::holds_alternative<LostEvent>(record->body) ||
               std::holds_alternative<ThrottleEvent>(record->body))
        last_.clear();  // the next stack joins nothing
    }
    seen_head_ = head;
    return {};
  }

 private:
  void add_stack(bts::BranchFlow& flow, std::vector<bts::Branch> stack) {
    bts::Join join = bts::join_stacks(last_, stack, most_new_);
    if (!join.exact) flow.lost(GapCause::kLost);
    for (std::size_t i = stack.size() - join.added; i < stack.size(); ++i) flow.add(stack[i]);
    last_ = std::move(stack);
  }

  RecordFormat format_;
  std::uint64_t most_new_;
  std::uint64_t seen_head_ = 0;
  std::vector<bts::Branch> last_;
};

}  // namespace

Recorders record_lbr(Kernel& kernel, const PerfConfig& config, ThreadId thread) {
  perf_event_attr attr = plain_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
  attr.sample_period = std::max<std::uint64_t>(config.lbr_period, 2);
  attr.sample_type = kSampleIp | kSampleBranchStack;
  attr.branch_sample_type = kBranchUser | kBranchAny;
  attr.write_backward = 1;
  attr.disabled = config.trial ? 1 : 0;
  auto event = Event::open(kernel, Purpose::kLbr, attr, {thread.tid, -1});
  if (!event) return fail(std::move(event.error()));
  std::uint64_t size = config.buffer_bytes != 0 ? config.buffer_bytes : kDefaultRing_bytes;
  if (auto ok = event->map_ring(size, Event::WhenFull::kOverwrite); !ok)
    return fail(std::move(ok.error()));
  RecordFormat format{attr.sample_type, false, attr.branch_sample_type, 0};
  return std::make_unique<LbrRecorder>(std::move(*event), config, format);
}

}  // namespace tailtrace::perf
