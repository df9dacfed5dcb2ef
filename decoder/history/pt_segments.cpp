#include "decoder/history/pt_segments.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "decoder/code/instruction.h"
#include "decoder/history/segment_counter.h"
#include "decoder/pt/flow/flow_items.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/segments/pause_seam.h"

namespace tailtrace {
namespace {

using pt::PacketKind;

// A PSB at which a trace can be cut.
struct Seam {
  std::uint64_t at = 0;
  Address next;            // the instruction behind it
  bool is_paused = false;  // tracing is off there
};

std::optional<Seam> seam_at(ByteSpan trace, std::size_t psb) {
  if (pt::find_psb(trace.first(std::min(psb + pt::kPsbSize_bytes, trace.size())), psb) != psb)
    return std::nullopt;
  if (pt::is_seam(trace, psb)) return Seam{psb, pt::seam_address(trace, psb), false};
  std::optional<Address> paused = pt::pause_at(trace, psb);
  return paused ? std::optional(Seam{psb, *paused, true}) : std::nullopt;
}

// Whether a packet behind PSB+ leaves open what is executed there first.
bool is_passed_over(const pt::Packet& packet, bool is_paused) {
  return pt::is_neutral(packet) || packet.kind == PacketKind::kMnt ||
         (packet.kind == PacketKind::kTipPge && is_paused);
}

// Whether a history that begins at a seam shows an instruction first: what was lost before ends
// there, and what is lost next is another loss.
bool shows_first(ByteSpan trace, const Seam& seam, const CodeImage& code, Epoch epoch) {
  if (!decode_instruction(code.at(seam.next, kMaxInstructionSize_bytes, epoch), seam.next))
    return false;
  pt::PacketReader packets(trace);
  packets.seek(seam.at + pt::kPsbSize_bytes);
  bool is_behind = false;  // PSB+
  for (pt::Packet packet; packets.next(packet) == pt::ReadStatus::kOk;) {
    const bool is_branch = packet.kind == PacketKind::kTnt || packet.kind == PacketKind::kTip ||
                           packet.kind == PacketKind::kTipPgd;
    if (packet.kind == PacketKind::kOvf || is_branch) return is_branch && is_behind;
    if (packet.kind == PacketKind::kModeExec && pt::mode_of(packet.payload) != CodeMode::k64)
      return false;
    if (is_behind && !is_passed_over(packet, seam.is_paused)) return false;
    is_behind = is_behind || packet.kind == PacketKind::kPsbEnd;
  }
  return false;
}

// Longer stretches where none does are cut all the same: their loss is several then.
constexpr std::uint64_t kMostUncut = 64;  // times the least

// `code`: one that shows an instruction of it first.
std::optional<Seam> find_seam(ByteSpan trace, std::size_t from, const CodeImage* code,
                              Epoch epoch) {
  for (auto psb = pt::find_psb(trace, from); psb;
       psb = pt::find_psb(trace, *psb + pt::kPsbSize_bytes)) {
    const std::optional<Seam> seam = seam_at(trace, *psb);
    if (seam && (code == nullptr || shows_first(trace, *seam, *code, epoch))) return seam;
  }
  return std::nullopt;
}

}  // namespace

class PtSegments::Reader final : public SegmentReader, public SegmentCounter {
 public:
  explicit Reader(const PtSegments& source)
      : source_(source), decoder_(source.trace_, *source.code_, source.config_, source.pool_) {}

  std::optional<Extent> cut(std::uint64_t end) override {
    const PtJoint* joint = joint_before(end);
    const std::uint64_t floor = joint == nullptr ? 0 : joint->at;
    std::uint64_t back_bytes = source_.options_.least_bytes;
    for (; back_bytes < end - floor; back_bytes *= 2) {
      const bool is_long = back_bytes > source_.options_.least_bytes * kMostUncut;
      const CodeImage* code = is_long ? nullptr : source_.code_.get();
      if (std::optional<Seam> seam = find_seam(source_.trace_.first(end), end - back_bytes, code,
                                               source_.config_.first_epoch))
        return Extent{seam->at, end};
    }
    if (joint != nullptr) return Extent{floor, end};
    std::optional<std::size_t> first = pt::find_psb(source_.trace_.first(end), 0);
    if (first) return Extent{*first, end};
    // A trace without a PSB is one gap, unless nothing was written.
    bool is_lost = end == source_.trace_.size() && !is_padding(source_.trace_);
    return is_lost ? std::optional(Extent{0, end}) : std::nullopt;
  }

  std::optional<SegmentCount> count(Extent extent) override {
    if (extent.end == source_.trace_.size() || joint_at(extent.begin) || joint_at(extent.end))
      return std::nullopt;
    const auto first =
        seam_at(source_.trace_.first(extent.end), static_cast<std::size_t>(extent.begin));
    const auto next = seam_at(source_.trace_, static_cast<std::size_t>(extent.end));
    if (!first || first->is_paused || !next || next->is_paused) return std::nullopt;
    counted_ = Counted{extent, decoder_.decode({extent.begin, extent.end}, false)};
    const pt::SegmentPath& path = counted_->path;
    if (path.started_at() != first->next || path.stopped_at() != next->next ||
        !path.gaps().empty() || !path.is_of_near_branches())
      return std::nullopt;
    const SegmentCount count{path.totals().insns, path.totals().records, path.open_insns() != 0};
    counted_.reset();
    return count;
  }

  SegmentRecords read(Extent extent) override {
    if (pt::find_psb(source_.trace_.first(extent.end), extent.begin) == std::nullopt)
      return lost(extent);
    const bool is_joined = joint_at(extent.end) != nullptr;
    pt::SegmentPath path = decode(extent, is_joined);
    SegmentRecords segment;
    segment.entry.epoch = source_.config_.first_epoch;
    segment.follows_code = true;
    const std::optional<Seam> seam =
        seam_at(source_.trace_.first(extent.end), static_cast<std::size_t>(extent.begin));
    if (const PtJoint* joint = joint_at(extent.begin)) {
      join(*joint, path, segment);
    } else if (seam) {
      segment.entry.at = seam->next;
      segment.entry.place = FlowState::Place::kRunning;
      segment.entry.last_gap = GapReason::kNone;
      segment.time_before = path.start_time();
    } else if (path.started_at()) {
      segment.made.push_back(
          {{}, *path.started_at(), path.start_time(), 0, RecordKind::kEnable, kFlagSynthetic, 0});
    }
    path.records(segment.made);
    if (seam && seam->is_paused) resume(segment);
    if (!is_joined && extent.end != source_.trace_.size()) close(path, extent.end, segment);
    use_clock(segment);
    segment.records = segment.made;
    return segment;
  }

 private:
  // What count() has decoded is not decoded again.
  pt::SegmentPath decode(Extent extent, bool ends_trace) {
    std::optional<Counted> counted = std::exchange(counted_, std::nullopt);
    const bool is_this = counted && counted->extent.begin == extent.begin &&
                         counted->extent.end == extent.end && !ends_trace;
    return is_this ? std::move(counted->path)
                   : decoder_.decode({extent.begin, extent.end}, ends_trace);
  }

  // The newest joint older than `end`; null: there is none.
  const PtJoint* joint_before(std::uint64_t end) const {
    const std::vector<PtJoint>& joints = source_.options_.joints;
    auto behind = std::lower_bound(joints.begin(), joints.end(), end,
                                   [](const PtJoint& joint, auto at) { return joint.at < at; });
    return behind == joints.begin() ? nullptr : &*(behind - 1);
  }
  const PtJoint* joint_at(std::uint64_t offset) const {
    const PtJoint* joint = joint_before(offset + 1);
    return joint != nullptr && joint->at == offset ? joint : nullptr;
  }

  static bool is_padding(ByteSpan bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
  }

  static SegmentRecords lost(Extent extent) {
    pt::RecordSink sink;
    sink.gap({pt::DecodeError::kNoSync, {}, extent.begin, extent.end - extent.begin});
    sink.finish();
    SegmentRecords segment;
    segment.made = sink.drain();
    segment.records = segment.made;
    return segment;
  }

  // Begins a segment that nothing is known of what came before.
  static void join(const PtJoint& joint, const pt::SegmentPath& path, SegmentRecords& segment) {
    const std::uint64_t time = path.start_time();
    segment.entry.last_gap = GapReason::kNone;
    if (joint.is_lost)
      segment.made.push_back({{},
                              {},
                              time,
                              0,
                              RecordKind::kGap,
                              kFlagAsync | kFlagSynthetic,
                              static_cast<std::uint16_t>(GapCause::kLost)});
    if (path.started_at())
      segment.made.push_back(
          {{}, *path.started_at(), time, 0, RecordKind::kEnable, kFlagSynthetic, 0});
  }

  void use_clock(SegmentRecords& segment) const {
    if (!source_.options_.clock) return;
    auto convert = [&](std::uint64_t& time) {
      if (time != 0) time = source_.options_.clock->to_ns(time);
    };
    convert(segment.time_before);
    for (BranchRecord& record : segment.made) convert(record.time);
  }

  // The flow was not away for the PSB.
  static void resume(SegmentRecords& segment) {
    if (segment.made.empty()) return;
    const BranchRecord& first = segment.made.front();
    if (first.kind != RecordKind::kEnable || first.to != segment.entry.at) return;
    segment.time_before = first.time;
    segment.made.erase(segment.made.begin());
  }

  // Flags of a record that is ours, where no branch is.
  static std::uint8_t made_at(Address from) {
    return kFlagAsync | kFlagSynthetic | kernel_flag(from);
  }

  // Ends the segment where the newer one begins: inside a run of `open_insns`, so far.
  static void put_seam(Address next, std::uint64_t time, std::uint32_t open_insns,
                       SegmentRecords& segment) {
    segment.has_seam = open_insns != 0;
    if (segment.has_seam)
      segment.made.push_back(
          {next, next, time, open_insns, RecordKind::kDiscontinuity, made_at(next), 0});
  }

  // Takes back what was believed to be an end.
  static bool close_paused(Address next, SegmentRecords& segment) {
    if (segment.made.empty()) return false;
    const BranchRecord last = segment.made.back();
    if (last.kind != RecordKind::kDisable || !last.is_async() || last.from != next) return false;
    segment.made.pop_back();
    put_seam(next, last.time, last.insns, segment);
    return true;
  }

  void close(const pt::SegmentPath& path, std::size_t psb, SegmentRecords& segment) {
    const std::optional<Seam> seam = seam_at(source_.trace_, psb);
    assert(seam);
    const Address next = seam->next;
    if (seam->is_paused && close_paused(next, segment)) return;
    const std::optional<Address> stopped = path.stopped_at();
    const std::uint64_t time = segment.made.empty() ? path.start_time() : segment.made.back().time;
    if (stopped == next) return put_seam(next, time, path.open_insns(), segment);
    if (stopped)
      segment.made.push_back(
          {*stopped, {}, time, path.open_insns(), RecordKind::kDisable, made_at(*stopped), 0});
    if (!pt::end_loss(segment.made, next))
      segment.made.push_back({{}, next, time, 0, RecordKind::kEnable, kFlagSynthetic, 0});
  }

  // Decoded by count(), which could not tell.
  struct Counted {
    Extent extent;
    pt::SegmentPath path;
  };

  const PtSegments& source_;
  pt::SegmentDecoder decoder_;
  std::optional<Counted> counted_;
};

PtSegments::PtSegments(std::shared_ptr<const void> owner, ByteSpan trace,
                       std::shared_ptr<const CodeImage> code, pt::DecoderConfig config,
                       PtSegmentsOptions options)
    : owner_(std::move(owner)),
      trace_(trace),
      code_(std::move(code)),
      config_(std::move(config)),
      options_(std::move(options)) {
  options_.least_bytes = std::max(options_.least_bytes, pt::kPsbSize_bytes);
  config_.only_64_bit_code = true;
  assert(config_.code_changes.empty());
}

std::unique_ptr<SegmentReader> PtSegments::reader() const {
  std::call_once(pool_made_,
                 [this] { pool_ = std::make_shared<pt::RowPool>(config_.first_epoch); });
  return std::make_unique<Reader>(*this);
}

}  // namespace tailtrace
