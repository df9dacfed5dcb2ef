// The flow decoder behind the interface that both decoders implement: what the fast path takes is
// unfolded at once, into as much as the sink wants to know.
#include <algorithm>
#include <optional>

#include "decoder/pt/fast/stretch_records.h"
#include "decoder/pt/flow/flow.h"

namespace tailtrace::pt {
namespace {

class Unfolder final : public PathSink {
 public:
  Unfolder(FastFlow& fast, Sink& sink) : fast_(fast), sink_(sink), detail_(sink.detail()) {}

  Detail detail() const override { return detail_; }
  void instructions(std::span<const Instruction> run, const RunState& state) override {
    sink_.instructions(run, state);
  }
  void event(const Event& event) override { sink_.event(event); }
  void gap(const Gap& gap) override { sink_.gap(gap); }

  bool takes_pauses() const override { return detail_ == Detail::kBranches; }

  CompactPath& begin_path(const PathStart& start,
                          const std::shared_ptr<const EffectBook>& book) override {
    stretch_.book = book;
    stretch_.start = start;
    path_.clear();
    return path_;
  }

  void end_path(const PathEnd& end) override {
    if (detail_ == Detail::kEvents || path_.words.size() == 0) return;
    stretch_.end = end;
    StretchRecords stretch(stretch_, path_.words.span(), path_.marks.span());
    PacketTime time = stretch_.start.before;
    while (!stretch.done()) {
      BranchRun run;
      run.begin = stretch.at();
      run.records = std::span(records_).first(stretch.take(records_));
      run.end = stretch.at();
      run.open_insns = stretch.open_insns();
      stretch.forget_insns();
      run.state = {end.mode, false, stretch.time().exact, stretch.time().ticks};
      detail_ == Detail::kBranches ? sink_.branches(run) : spell_out(run, time);
      time = stretch.time();
    }
  }

 private:
  static constexpr std::size_t kMaxRun = 1024;

  // The branch of a record has its time, what ran before it that of the record before.
  void spell_out(const BranchRun& run, PacketTime time) {
    reader_ = &fast_.reader(run.state.mode);
    state_ = {run.state.mode, false, time.exact, time.ticks};
    Address at = run.begin;
    for (const BranchRecord& record : run.records) {
      at = go_on(at, record.insns - 1);
      RunState state = state_;
      state.time = record.time;
      state.time_exact = (record.flags & kFlagTimeExact) != 0;
      use_state(state);
      go_on(at, 1);
      at = record.to;
    }
    go_on(at, run.open_insns);
    flush();
  }

  // `insns` instructions, one behind the other; what comes next.
  Address go_on(Address at, std::uint32_t insns) {
    for (; insns != 0; --insns) {
      std::optional<Instruction> insn = reader_->at(at);
      if (!insn) return at;  // it has been there
      if (run_.size() == kMaxRun) flush();
      run_.push_back(*insn);
      at = insn->next();
    }
    return at;
  }

  void use_state(const RunState& state) {
    if (state.time == state_.time && state.time_exact == state_.time_exact) return;
    flush();
    state_ = state;
  }

  void flush() {
    if (!run_.empty()) sink_.instructions(run_, state_);
    run_.clear();
  }

  FastFlow& fast_;
  Sink& sink_;
  const Detail detail_;
  Stretch stretch_;
  CompactPath path_;
  // A few thousand at a time stay in the processor's caches.
  std::vector<BranchRecord> records_ = std::vector<BranchRecord>(4096);
  CodeReader* reader_ = nullptr;
  std::vector<Instruction> run_;
  RunState state_;
};

class FlowDecoder final : public Decoder {
 public:
  FlowDecoder(const CodeImage& code, const DecoderConfig& config) : code_(code), config_(config) {}

  std::string_view name() const override { return "flow"; }

  void decode(ByteSpan trace, Sink& sink) override {
    if (!find_psb(trace, 0)) {
      bool padding = std::all_of(trace.begin(), trace.end(), [](auto b) { return b == 0; });
      if (!padding) sink.gap({DecodeError::kNoSync, {}, 0, trace.size()});
      return;
    }
    if (!fast_) fast_.emplace(code_, config_);
    Unfolder unfolder(*fast_, sink);
    FlowWalker(trace, code_, config_, unfolder, *fast_).run(0, trace.size());
  }

 private:
  const CodeImage& code_;
  const DecoderConfig config_;
  std::optional<FastFlow> fast_;
};

}  // namespace

std::unique_ptr<Decoder> make_flow_decoder(const CodeImage& code, const DecoderConfig& config) {
  return std::make_unique<FlowDecoder>(code, config);
}

}  // namespace tailtrace::pt
