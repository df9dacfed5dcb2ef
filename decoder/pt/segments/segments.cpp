#include "decoder/pt/segments/segments.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "decoder/base/no_signals.h"
#include "decoder/pt/flow/flow.h"
#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace::pt {

// Its PSB+ has an address, and it is not the one that BDM70 puts before a TIP.PGE.
bool is_seam(ByteSpan trace, std::size_t psb) {
  PacketReader packets(trace);
  packets.seek(psb + kPsbSize_bytes);
  bool has_ip = false, ended = false;
  for (Packet packet; packets.next(packet) == ReadStatus::kOk;) {
    switch (packet.kind) {
      case PacketKind::kFup:
        if (ended) return has_ip;
        has_ip = packet.bits != kIpSuppressed;
        break;
      case PacketKind::kPsbEnd:
        if (!has_ip || ended) return has_ip;
        ended = true;
        break;
      case PacketKind::kTipPge:
      case PacketKind::kOvf:
        return has_ip && ended && packet.kind == PacketKind::kOvf;
      case PacketKind::kTnt:
      case PacketKind::kTip:
      case PacketKind::kTipPgd:
      case PacketKind::kPsb:
        return has_ip && ended;
      default:
        break;
    }
  }
  return false;
}

std::optional<std::size_t> find_seam(ByteSpan trace, std::size_t from) {
  while (from < trace.size()) {
    std::optional<std::size_t> psb = find_psb(trace, from);
    if (!psb || is_seam(trace, *psb)) return psb;
    from = *psb + kPsbSize_bytes;
  }
  return std::nullopt;
}

Address seam_address(ByteSpan trace, std::size_t psb) {
  PacketReader packets(trace);
  packets.seek(psb + kPsbSize_bytes);
  std::uint64_t ip = 0;
  for (Packet packet; packets.next(packet) == ReadStatus::kOk;) {
    if (packet.kind == PacketKind::kPsbEnd || packet.kind == PacketKind::kOvf) break;
    if (packet.kind == PacketKind::kFup && packet.bits != kIpSuppressed) ip = apply_ip(ip, packet);
  }
  return {ip};
}

std::vector<Segment> find_segments(ByteSpan trace, std::size_t least_bytes) {
  std::vector<Segment> segments;
  std::optional<std::size_t> psb = find_psb(trace, 0);
  while (psb) {
    std::optional<std::size_t> next =
        find_seam(trace, *psb + std::max(least_bytes, kPsbSize_bytes));
    segments.push_back({*psb, next.value_or(trace.size())});
    psb = next;
  }
  return segments;
}

// --- Decoding --------------------------------------------------------------------------------

// Collects what a FlowWalker with a fast path finds.
class PathRecorder final : public PathSink {
 public:
  explicit PathRecorder(SegmentPath& path) : path_(path) { path_.chunks_.emplace_back(); }

  void instructions(std::span<const Instruction> run, const RunState& state) override {
    begin(run.front().address);
    slow_.instructions(run, state);
    path_.totals_.insns += run.size();
    for (const Instruction& insn : run) path_.totals_.branches += insn.is_branch();
  }
  void event(const Event& event) override {
    switch (event.kind) {
      case EventKind::kEnabled:
        begun_ = true;  // it did not begin inside the flow
        break;
      case EventKind::kOverflow:
        event.to.is_null() ? void(begun_ = true) : begin(event.to);
        break;
      case EventKind::kAsyncBranch:
      case EventKind::kAsyncDisabled:
      case EventKind::kEndOfTrace:
        begin(event.ip);
        break;
      case EventKind::kTransaction:
        if (!begun_ && event.has(kEventStatusUpdate))
          begins_in_transaction_ = event.has(kEventSpeculative);
        if (!event.has(kEventStatusUpdate) && !event.has(kEventIpSuppressed)) begin(event.ip);
        break;
      default:
        break;
    }
    slow_.event(event);
  }
  void gap(const Gap& gap) override {
    gap.ip.is_null() ? void(begun_ = true) : begin(gap.ip);
    slow_.gap(gap);
    path_.gaps_.push_back(gap);
  }

  CompactPath& begin_path(const PathStart& start,
                          const std::shared_ptr<const EffectBook>& book) override {
    next_ = {};
    next_.stretch = {book, start, {}};
    next_.first_word = path_.path_.words.size();
    next_.first_mark = path_.path_.marks.size();
    return path_.path_;
  }

  void end_path(const PathEnd& end) override {
    next_.word_count = path_.path_.words.size() - next_.first_word;
    next_.mark_count = path_.path_.marks.size() - next_.first_mark;
    if (next_.word_count == 0) return;
    Stretch& stretch = next_.stretch;
    stretch.end = end;
    begin(stretch.start.at);
    next_.open_insns = slow_.hand_over(stretch.start.at);
    close_chunk();
    next_.first_record = path_.records_.size();
    path_.chunks_.push_back(next_);
    path_.totals_.insns += end.totals.insns;
    path_.totals_.branches += end.totals.branches;
    path_.totals_.records += end.totals.records;
    slow_.take_back(end.at, open_insns(next_), end.state());
  }

  // `walker` has decoded the segment.
  void finish(const FlowWalker& walker) {
    path_.stopped_at_ = walker.stopped_at();
    if (path_.stopped_at_) begin(*path_.stopped_at_);
    if (inside_) path_.started_at_ = walker.started_at();
    if (path_.stopped_at_)
      path_.open_insns_ = slow_.hand_over(*path_.stopped_at_);
    else
      slow_.finish();
    close_chunk();
    path_.totals_.records += path_.records_.size();
  }

 private:
  // Since the last record of the chunk, or since before it.
  std::uint32_t open_insns(const SegmentPath::Chunk& chunk) const {
    std::uint64_t insns = 0;
    std::span<const std::uint32_t> words = path_.words_of(chunk);
    for (std::size_t i = words.size(); i-- != 0;) {
      const Effect effect = chunk.stretch.book->effect(words[i] & kPathEffect);
      insns += effect.tail_insns;
      if (effect.made_bytes != 0) return static_cast<std::uint32_t>(insns);
    }
    return static_cast<std::uint32_t>(insns + chunk.open_insns);
  }

  void close_chunk() {
    SegmentPath::Chunk& chunk = path_.chunks_.back();
    for (const BranchRecord& record : slow_.drain()) path_.records_.push_back(record);
    chunk.record_count = path_.records_.size() - chunk.first_record;
  }

  // A segment that begins inside the flow goes on with it, whoever had it before.
  void begin(Address at) {
    if (std::exchange(begun_, true)) return;
    inside_ = true;
    path_.start_time_ = slow_.time();
    slow_.take_back(at, 0, {{}, begins_in_transaction_, false, slow_.time()});
  }

  SegmentPath& path_;
  RecordSink slow_;
  SegmentPath::Chunk next_;  // being written
  bool begun_ = false;
  bool begins_in_transaction_ = false;  // as its PSB says
  bool inside_ = false;
};

SegmentDecoder::SegmentDecoder(ByteSpan trace, const CodeImage& code, const DecoderConfig& config,
                               std::shared_ptr<RowPool> pool)
    : trace_(trace), code_(code), config_(config), fast_(code, config, std::move(pool)) {}

SegmentPath SegmentDecoder::decode(const Segment& segment, bool ends_trace) {
  SegmentPath path;
  path.segment_ = segment;
  path_.reuse();
  std::swap(path.path_, path_);
  PathRecorder recorder(path);
  const ByteSpan trace = ends_trace ? trace_.first(segment.end) : trace_;
  FlowWalker walker(trace, code_, config_, recorder, fast_);
  walker.run(segment.begin, segment.end);
  recorder.finish(walker);
  CompactPath taken = path.path_.take();
  path_ = std::exchange(path.path_, std::move(taken));
  return path;
}

// Neighbours run much the same code: so each thread has a part of its own, and helps the others
// when that is done.
std::vector<SegmentPath> decode_segments(ByteSpan trace, std::span<const Segment> segments,
                                         const CodeImage& code, const DecoderConfig& config,
                                         unsigned threads) {
  std::vector<SegmentPath> paths(segments.size());
  std::vector<std::atomic<std::size_t>> next(std::max(threads, 1u));
  auto begin_of = [&](std::size_t part) { return segments.size() * part / next.size(); };
  for (std::size_t part = 0; part < next.size(); ++part) next[part] = begin_of(part);
  auto pool = std::make_shared<RowPool>(config.first_epoch);
  auto work = [&](std::size_t own) {
    SegmentDecoder decoder(trace, code, config, pool);
    for (std::size_t turn = 0; turn < next.size(); ++turn) {
      std::size_t part = (own + turn) % next.size(), end = begin_of(part + 1);
      for (std::size_t i; (i = next[part].fetch_add(1, std::memory_order_relaxed)) < end;)
        paths[i] = decoder.decode(segments[i]);
    }
  };
  std::vector<std::thread> others;
  {
    NoSignals inherited;
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, i);
  }
  work(0);
  for (std::thread& other : others) other.join();
  return paths;
}

// --- Records ---------------------------------------------------------------------------------

bool SegmentPath::is_of_near_branches() const {
  for (const BranchRecord& record : records_)
    if (!is_near_branch(record) || record.to.is_null()) return false;
  for (const Chunk& chunk : chunks_)
    for (const std::uint32_t word : words_of(chunk))
      if (!chunk.stretch.book->is_near(word & kPathEffect)) return false;
  return true;
}

std::size_t SegmentPath::size_bytes() const {
  return sizeof *this + path_.size_bytes() + chunks_.size() * sizeof(Chunk) +
         records_.size() * sizeof(BranchRecord) + gaps_.size() * sizeof(Gap);
}

void SegmentPath::records(std::vector<BranchRecord>& out) const {
  std::size_t before = out.size();
  out.resize(before + room());
  out.resize(before + records(std::span(out).subspan(before)));
}

std::size_t SegmentPath::records(std::span<BranchRecord> room) const {
  BranchRecord* to = room.data();
  for (const Chunk& chunk : chunks_) {
    if (chunk.word_count != 0) {
      StretchRecords stretch(chunk.stretch, words_of(chunk), marks_of(chunk));
      std::size_t count = stretch.take({to, room.data() + room.size()});
      if (count != 0) to->insns += chunk.open_insns;
      to += count;
    }
    to = std::copy_n(records_.data() + chunk.first_record, chunk.record_count, to);
  }
  return static_cast<std::size_t>(to - room.data());
}

bool end_loss(std::vector<BranchRecord>& records, Address next) {
  if (records.empty()) return false;
  BranchRecord& last = records.back();
  const bool is_loss = last.kind == RecordKind::kGap || last.kind == RecordKind::kOverflow;
  if (!is_loss || !last.to.is_null()) return false;
  last.to = next;
  return true;
}

std::vector<BranchRecord> join_records(std::span<const SegmentPath> paths) {
  std::vector<BranchRecord> out;
  std::optional<Address> stopped;
  std::uint32_t open = 0;
  for (const SegmentPath& path : paths) {
    if (stopped && stopped != path.started_at())
      out.push_back({*stopped,
                     {},
                     path.start_time(),
                     open,
                     RecordKind::kDisable,
                     static_cast<std::uint8_t>(kFlagAsync | kFlagSynthetic | kernel_flag(*stopped)),
                     0});
    std::size_t first = out.size();
    if (path.started_at() && stopped != path.started_at()) {
      if (!end_loss(out, *path.started_at()))
        out.push_back(
            {{}, *path.started_at(), path.start_time(), 0, RecordKind::kEnable, kFlagSynthetic, 0});
      first = out.size();
      open = 0;
    }
    path.records(out);
    bool goes_on = path.started_at() && first < out.size();
    if (goes_on) out[first].insns += open;
    stopped = path.stopped_at();
    open = path.open_insns() + (first == out.size() ? open : 0);
  }
  return out;
}

}  // namespace tailtrace::pt
