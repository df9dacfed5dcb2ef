// Recorder of last branch records: a short tail where the processor has nothing longer. It ends at
// the last sample, not at the stop; between stacks that do not join there is a gap.
#include <algorithm>
#include <charconv>

#include "decoder/bts/branch_list.h"
#include "decoder/bts/stack_join.h"
#include "decoder/perf/events.h"
#include "plugin/engines/perf/branch_events.h"
#include "plugin/engines/perf/flow_recorder.h"

namespace tailtrace::perf {
namespace {

class LbrRecorder final : public FlowRecorder {
 public:
  LbrRecorder(Event event, const PerfConfig& config, const RecordFormat& format)
      : FlowRecorder(std::move(event), config.records.ring_records, std::nullopt),
        format_(format),
        most_new_(most_between_stacks(config)) {}

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
  perf_event_attr attr = branch_stack_attr(config);
  attr.disabled = config.trial ? 1 : 0;
  auto event = Event::open(kernel, Purpose::kLbr, attr, {thread.tid, -1});
  if (!event) return fail(std::move(event.error()));
  if (auto ok = event->map_largest_ring(stack_buffer_for(config), Event::WhenFull::kOverwrite); !ok)
    return fail(std::move(ok.error()));
  RecordFormat format{attr.sample_type, false, attr.branch_sample_type, 0};
  return std::make_unique<LbrRecorder>(std::move(*event), config, format);
}

}  // namespace tailtrace::perf
