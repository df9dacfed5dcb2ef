// Recorder of Intel PT. The trace is decoded when somebody asks; an overwritten buffer does not
// tell how much of it is new, so as much is decoded as holds the records that are kept, however
// large it is, and laid over what is known already.
#include <algorithm>
#include <map>

#include "decoder/perf/aux_area.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/tail.h"
#include "plugin/engines/perf/aux_event.h"
#include "plugin/engines/perf/breakpoints.h"
#include "plugin/engines/perf/overlap.h"
#include "plugin/engines/perf/pt_settings.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kDefaultArea_bytes = 1u << 20;
// Of the trace, that are decoded at least.
constexpr std::size_t kNewest_bytes = 64u << 10;

// Tracing begins with a PSB (SDM, Intel PT, "Packet Generation Scenarios"). Zeros alone do not show
// that a buffer was never full: the packet that its seam cuts may end with some.
bool begins_with_psb(const Bytes& trace) {
  ByteSpan begin = ByteSpan(trace).first(std::min(trace.size(), pt::kPsbSize_bytes));
  return pt::find_psb(begin, 0) == 0u;
}

class PtRecorder final : public ThreadRecorder {
 public:
  PtRecorder(Kernel& kernel, Event event, const PerfConfig& config,
             const pt::DecoderConfig& decoder)
      : kernel_(kernel),
        event_(std::move(event)),
        keep_(config.records.ring_records),
        timed_(config.tsc),
        config_(decoder) {}

  Result<void> refresh(const CodeInUse& code) override {
    {
      Quiet quiet(event_);
      auto view = order_aux_area(event_.aux(), event_.aux_head(), AuxHead::kOffset);
      if (!view) return fail(std::move(view.error()));
      Bytes now = without_leading_zeros(*view).joined();
      holds_all_ = now.empty() || (now.size() < view->size_bytes() && begins_with_psb(now));
      auto holes = read_aux_holes(event_, ~0ull, event_.aux().size());
      if (!holes) return fail(std::move(holes.error()));
      if (!holes->empty()) now = pt::with_holes(now, *holes);
      if (now == trace_ && image_ == code.image) return {};
      trace_ = std::move(now);
    }
    image_ = code.image;
    decode(code);
    return {};
  }

  // It is switched on as soon as there is anything to record.
  Result<void> reconfigure(const PerfConfig& config) override {
    auto anything = set_filters(event_, config);
    if (!anything) return fail(std::move(anything.error()));
    for (auto [address, action] : {std::pair{config.resume_at, AuxAction::kResume},
                                   std::pair{config.pause_at, AuxAction::kPause}})
      if (address && !address->is_null())
        if (auto ok = set_trigger(*address, action); !ok) return ok;
    return *anything && !config.trial ? event_.enable(true) : Result<void>();
  }

  Position end() const override { return {first_ + sink_.records().size()}; }

  void fill(const Engine::Stop& stop, ThreadSnapshot& snapshot) override {
    std::vector<BranchRecord> closing = sink_.closing(stop.pc);
    snapshot.first = {first_};
    snapshot.records = sink_.records();
    snapshot.records.insert(snapshot.records.end(), closing.begin(), closing.end());
    snapshot.complete = holds_all_ && sink_.forgotten() == 0;
    snapshot.first_epoch = sink_.first_epoch();
  }

  std::uint64_t buffer_bytes() const override { return event_.aux().size(); }
  const std::optional<Error>& shortened() const override { return event_.shortened(); }

 private:
  // A breakpoint that lets the trace go on, or pauses it.
  Result<void> set_trigger(Address address, AuxAction action) {
    if (triggers_.contains(action)) return {};
    BreakpointSpec spec;
    spec.address = address;
    spec.name = action == AuxAction::kResume ? "the trigger that lets the trace go on"
                                             : "the trigger that pauses the trace";
    spec.action = action;
    auto trigger = Marker::open(kernel_, event_.target().tid, spec, page_size(), &event_);
    if (!trigger) return fail(std::move(trigger.error()));
    triggers_.emplace(action, std::move(*trigger));
    return {};
  }

  void decode(const CodeInUse& code) {
    std::vector<BranchRecord> before = sink_.records();
    const std::uint64_t end_before = first_ + before.size();
    knows_all_ = decode_newest(code) == 0 && holds_all_ && knows_all_;
    std::span<const BranchRecord> now = sink_.records();
    if (knows_all_) {
      first_ = sink_.forgotten();
      return;
    }
    // A trace that lost its beginning begins with where decoding began, which is no event, and
    // with the end of a run that began earlier.
    std::size_t made_up = sink_.forgotten() == 0 ? std::min<std::size_t>(2, now.size()) : 0;
    std::uint64_t begin = end_before - longest_overlap(before, now.subspan(made_up));
    first_ = begin - std::min<std::uint64_t>(made_up, begin);
  }

  // Begins with a PSB, twice as far back each time until there are more records than are kept.
  // Returns where it began.
  std::size_t decode_newest(const CodeInUse& code) {
    for (std::size_t back = std::max(kNewest_bytes, keep_);; back *= 2) {
      const bool is_all = back >= trace_.size();
      const std::size_t start = is_all ? 0 : pt::find_psb(trace_, trace_.size() - back).value_or(0);
      sink_ = pt::Tail(keep_, timed_ ? code.begins : std::vector<pt::EpochBegin>(),
                       timed_ ? Epoch{} : code.epoch());
      decoder_with(code).decode(ByteSpan(trace_).subspan(start), sink_);
      (void)sink_.records();
      if (start == 0 || sink_.forgotten() != 0) return start;
    }
  }

  // What a decoder found out about the code serves the next time as well, until the code changes.
  pt::Decoder& decoder_with(const CodeInUse& code) {
    if (decoder_ && decoded_image_ == code.image) return *decoder_;
    pt::DecoderConfig config = config_;
    config.first_epoch = sink_.first_epoch();
    if (timed_) config.code_changes = pt::code_changes(code.begins);
    decoder_ = pt::make_flow_decoder(*code.image, config);
    decoded_image_ = code.image;
    return *decoder_;
  }

  Kernel& kernel_;
  Event event_;
  std::map<AuxAction, Marker> triggers_;  // of the event's group
  std::size_t keep_;
  bool timed_;  // else all is read with the newest code
  pt::DecoderConfig config_;
  std::shared_ptr<const CodeImage> image_, decoded_image_;
  std::unique_ptr<pt::Decoder> decoder_;  // with that code
  Bytes trace_;
  bool holds_all_ = true;    // the buffer was never full
  bool knows_all_ = true;    // and was decoded from its begin on each time
  mutable pt::Tail sink_;    // with what was decoded last
  std::uint64_t first_ = 0;  // position of its first record
};

}  // namespace

Recorders record_pt(Kernel& kernel, const PerfConfig& config, ThreadId thread) {
  auto pmu = read_pmu(kernel.root(), "intel_pt");
  if (!pmu) return fail(explain(kernel, {Purpose::kPt, Step::kOpen, ENOENT, {thread.tid, -1}}));
  const std::uint64_t size =
      mappable_size(config.buffer_bytes != 0 ? config.buffer_bytes : kDefaultArea_bytes);
  auto attr = pt_attr(*pmu, config, size);
  if (!attr) return fail(std::move(attr.error()));
  auto event = open_aux_event(kernel, Purpose::kPt, *attr, {thread.tid, -1}, size);
  if (!event) return fail(std::move(event.error()));
  Machine machine = read_machine(kernel.root());
  auto recorder = std::make_unique<PtRecorder>(kernel, std::move(*event), config,
                                               pt_decoder_config(machine.cpu, *pmu, config));
  if (attr->disabled)
    if (auto ok = recorder->reconfigure(config); !ok) return fail(std::move(ok.error()));
  return recorder;
}

}  // namespace tailtrace::perf
