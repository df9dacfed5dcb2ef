#include "decoder/pt/segments.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

namespace tailtrace::pt {

namespace {

// Whether the code goes on over the PSB: its PSB+ has an address, and it is not the one that BDM70
// puts before a TIP.PGE.
bool is_inside_flow(ByteSpan trace, std::size_t psb) {
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
    if (!psb || is_inside_flow(trace, *psb)) return psb;
    from = *psb + kPsbSize_bytes;
  }
  return std::nullopt;
}

}  // namespace

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
    begin(run.front().address, state.time);
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
        event.to.is_null() ? void(begun_ = true) : begin(event.to, event.time);
        break;
      case EventKind::kAsyncBranch:
      case EventKind::kAsyncDisabled:
      case EventKind::kEndOfTrace:
        begin(event.ip, event.time);
        break;
      case EventKind::kTransaction:
        if (!event.has(kEventStatusUpdate) && !event.has(kEventIpSuppressed))
          begin(event.ip, event.time);
        break;
      default:
        break;
    }
    slow_.event(event);
  }
  void gap(const Gap& gap) override {
    begun_ = true;
    slow_.gap(gap);
    path_.gaps_.push_back(gap);
  }

  PathWords& begin_path(const PathStart& start,
                        const std::shared_ptr<const EffectBook>& book) override {
    next_ = {};
    next_.book = book;
    next_.start = start;
    next_.first_word = path_.words_.size();
    return path_.words_;
  }

  void end_path(Address at, const PathTotals& totals, bool timed) override {
    next_.word_count = path_.words_.size() - next_.first_word;
    if (next_.word_count == 0) return;
    begin(next_.start.at, 0);
    next_.open_insns = slow_.hand_over(next_.start.at);
    next_.timed = timed;
    close_chunk();
    next_.first_record = path_.records_.size();
    next_.end = at;
    path_.chunks_.push_back(next_);
    path_.totals_.insns += totals.insns;
    path_.totals_.branches += totals.branches;
    path_.totals_.records += totals.records;
    slow_.take_back(at, open_insns(next_));
  }

  // `walker` has decoded the segment.
  void finish(const FlowWalker& walker) {
    path_.stopped_at_ = walker.stopped_at();
    if (path_.stopped_at_) begin(*path_.stopped_at_, 0);
    if (inside_) path_.started_at_ = walker.started_at();
    if (path_.stopped_at_)
      path_.open_insns_ = slow_.hand_over(*path_.stopped_at_);
    else
      slow_.finish();
    close_chunk();
    path_.totals_.records += path_.records_.size();
    path_.words_.fit();
  }

 private:
  // Since the last record of the chunk, or since before it.
  std::uint32_t open_insns(const SegmentPath::Chunk& chunk) const {
    std::uint64_t insns = 0;
    std::span<const std::uint32_t> words =
        path_.words_.span().subspan(chunk.first_word, chunk.word_count);
    for (std::size_t i = words.size(); i-- != 0;) {
      const Effect& effect = chunk.book->effects[words[i] & kPathEffect];
      if (effect.record_count != 0) return static_cast<std::uint32_t>(insns + effect.tail_insns);
      insns += effect.insns;
    }
    return static_cast<std::uint32_t>(insns + chunk.open_insns);
  }

  void close_chunk() {
    SegmentPath::Chunk& chunk = path_.chunks_.back();
    for (const BranchRecord& record : slow_.drain()) path_.records_.push_back(record);
    chunk.record_count = path_.records_.size() - chunk.first_record;
  }

  // A segment that begins inside the flow goes on with it, whoever had it before.
  void begin(Address at, std::uint64_t time) {
    if (std::exchange(begun_, true)) return;
    inside_ = true;
    path_.start_time_ = time;
    slow_.take_back(at, 0);
  }

  SegmentPath& path_;
  RecordSink slow_;
  SegmentPath::Chunk next_;  // being written
  bool begun_ = false;
  bool inside_ = false;
};

SegmentDecoder::SegmentDecoder(ByteSpan trace, const CodeImage& code, const DecoderConfig& config)
    : trace_(trace), code_(code), config_(config), fast_(code, config) {}

SegmentPath SegmentDecoder::decode(const Segment& segment) {
  SegmentPath path;
  path.segment_ = segment;
  PathRecorder recorder(path);
  FlowWalker walker(trace_, code_, config_, recorder, fast_);
  walker.run(segment.begin, segment.end);
  recorder.finish(walker);
  return path;
}

std::vector<SegmentPath> decode_segments(ByteSpan trace, std::span<const Segment> segments,
                                         const CodeImage& code, const DecoderConfig& config,
                                         unsigned threads) {
  std::vector<SegmentPath> paths(segments.size());
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    SegmentDecoder decoder(trace, code, config);
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < segments.size();)
      paths[i] = decoder.decode(segments[i]);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return paths;
}

// --- Records ---------------------------------------------------------------------------------

// The time of each packet that makes words of the path, in order.
class PacketTimes {
 public:
  PacketTimes(ByteSpan trace, const Segment& segment, const DecoderConfig& config)
      : packets_(trace, config.errata.skz84), clock_(config.timing, config.errata.skl168) {
    packets_.seek(segment.begin);
  }

  // Up to the packet at `offset_bytes`.
  void seek(std::size_t offset_bytes) {
    while (packets_.offset() < offset_bytes && step()) {
    }
  }
  // Behind the next TNT, TIP, TIP.PGD or TIP.PGE.
  void next() {
    while (!skip_common() && step() && !at_branch_) {
    }
  }
  std::uint64_t time() const { return time_; }
  bool exact() const { return exact_; }

 private:
  // The most frequent packets, without taking them apart: a short TNT, TIP, and CYCs before them.
  bool skip_common() {
    const std::uint8_t* bytes = packets_.bytes().data();
    std::size_t offset = packets_.offset(), size = packets_.size_bytes();
    while (offset < size && (bytes[offset] & 7) == 3) {  // CYC of one byte
      clock_.take_cyc(bytes[offset++] >> 3);
      fresh_ = true;
    }
    constexpr std::uint8_t kTipSizes[8] = {0, 3, 5, 7, 7, 0, 9, 0};
    std::uint8_t head = offset < size ? bytes[offset] : 0;
    std::size_t length = 0;
    if ((head & 1) == 0 && head > 2)
      length = 1;
    else if ((head & 0x1f) == 0x0d)
      length = kTipSizes[head >> 5];
    bool whole = length != 0 && offset + length <= size;
    if (whole) keep_time();
    packets_.seek(whole ? offset + length : offset);
    return whole;
  }

  bool step() {
    Packet packet;
    if (packets_.next(packet) != ReadStatus::kOk) return false;
    at_branch_ = false;
    switch (packet.kind) {
      case PacketKind::kTnt:
      case PacketKind::kTip:
      case PacketKind::kTipPgd:
      case PacketKind::kTipPge:
        at_branch_ = true;
        keep_time();
        break;
      case PacketKind::kPsb:
        in_psb_ = true;
        clock_.psb();
        break;
      case PacketKind::kPsbEnd:
        in_psb_ = false;
        break;
      case PacketKind::kOvf:
        in_psb_ = false;
        clock_.overflow();
        break;
      default:
        clock_.take(packet, in_psb_);
        fresh_ |= packet.kind == PacketKind::kCyc || packet.kind == PacketKind::kTsc;
        break;
    }
    return true;
  }

  // An estimate that ran ahead must not make time go back.
  void keep_time() {
    std::uint64_t now = clock_.known() ? clock_.ticks() : 0;
    if (now >= time_ || time_ - now >= kMaxOvershoot) time_ = now;
    exact_ = fresh_ && time_ != 0;
    fresh_ = false;
  }

  PacketReader packets_;
  Clock clock_;
  bool in_psb_ = false, at_branch_ = false, fresh_ = false, exact_ = false;
  std::uint64_t time_ = 0;
};

std::size_t SegmentPath::size_bytes() const {
  return sizeof *this + words_.size() * sizeof(std::uint32_t) + chunks_.size() * sizeof(Chunk) +
         records_.size() * sizeof(BranchRecord) + gaps_.size() * sizeof(Gap);
}

// Writes records by way of a buffer in the first cache, and sees to it that time does not go back:
// events carry the clock's estimate as it was.
class RecordWriter {
 public:
  explicit RecordWriter(std::vector<BranchRecord>& out) : out_(out) {}
  ~RecordWriter() { flush(); }

  // Room for `count` records, at most kMost, behind the last one; counted by grow().
  static constexpr std::size_t kMost = 512;
  BranchRecord* room(std::size_t count) {
    if (size_ + count > std::size(buffer_)) flush();
    return buffer_ + size_;
  }
  void grow(std::size_t count) { size_ += count; }

  void append(std::span<const BranchRecord> records) {
    for (const BranchRecord& record : records) {
      BranchRecord& to = *room(1);
      to = record;
      to.time = not_before(record.time);
      grow(1);
    }
  }

  // The time of what is written next.
  std::uint64_t not_before(std::uint64_t time) {
    if (time < time_ && time_ - time < kMaxOvershoot) time = time_;
    return time_ = time;
  }

 private:
  void flush() {
    out_.insert(out_.end(), buffer_, buffer_ + size_);
    size_ = 0;
  }

  std::vector<BranchRecord>& out_;
  std::size_t size_ = 0;
  std::uint64_t time_ = 0;
  BranchRecord buffer_[2 * kMost];
};
static_assert(Counts::kMaxBranches + 2 <= RecordWriter::kMost);

namespace {

// Copies records and gives them a time; `insns` more ran before the first.
inline void copy_records(const BranchRecord* from, std::size_t count, std::uint64_t time,
                         std::uint8_t flags, std::uint32_t insns, BranchRecord* to) {
  // The last eight bytes at once: a byte read back from a wider store waits for it.
  constexpr std::size_t kLast = offsetof(BranchRecord, insns);
  std::uint64_t more = std::uint64_t{flags} << (8 * (offsetof(BranchRecord, flags) - kLast));
  for (std::size_t i = 0; i < count; ++i) {
    to[i].from = from[i].from;
    to[i].to = from[i].to;
    to[i].time = time;
    std::uint64_t last;
    std::memcpy(&last, &from[i].insns, sizeof last);
    last |= more;
    std::memcpy(&to[i].insns, &last, sizeof last);
  }
  to->insns += insns;
}

}  // namespace

// Words of a chunk, as records, one after the other.
template <bool kTimed>
class SegmentPath::Expander {
 public:
  Expander(const SegmentPath& path, const Chunk& chunk, PacketTimes& times, RecordWriter& out)
      : words_(path.words_.span().subspan(chunk.first_word, chunk.word_count)),
        chunk_(chunk),
        effects_(chunk.book->effects.data()),
        records_(chunk.book->records.data()),
        times_(times),
        out_(out),
        time_(out.not_before(chunk.start.time)),
        open_(chunk.open_insns) {}

  [[gnu::always_inline]] void run() {
    // Effects and records lie anywhere in memory, and are known long before.
    constexpr std::size_t kAhead = 8;
    std::size_t i = 0;
    for (; i + 2 * kAhead < words_.size(); ++i) {
      __builtin_prefetch(&effect_at(i + 2 * kAhead));
      __builtin_prefetch(records_ + effect_at(i + kAhead).first_record);
      expand(i);
    }
    for (; i < words_.size(); ++i) expand(i);
    if (returned_to_ != nullptr) *returned_to_ = chunk_.end;
  }

 private:
  const Effect& effect_at(std::size_t i) const { return effects_[words_[i] & kPathEffect]; }

  [[gnu::always_inline]] void expand(std::size_t i) {
    if ((words_[i] & kPathFirst) != 0) next_packet(i == 0);
    const Effect& effect = effect_at(i);
    if (returned_to_ != nullptr) returned_to_->value = effect.start;
    returned_to_ = nullptr;
    if (effect.record_count == 0) {
      open_ += effect.insns;
      return;
    }
    BranchRecord* to = out_.room(effect.record_count);
    copy_records(records_ + effect.first_record, effect.record_count, time_, flags_, open_, to);
    open_ = effect.tail_insns;
    if (effect.returns) returned_to_ = &to[effect.record_count - 1].to;
    out_.grow(effect.record_count);
  }

  [[gnu::always_inline]] void next_packet(bool first) {
    bool exact = first && chunk_.start.time_exact && time_ != 0;
    if (kTimed) {
      times_.next();
      time_ = out_.not_before(times_.time());
      exact = times_.exact();
    }
    flags_ = exact ? kFlagTimeExact : 0;
  }

  const std::span<const std::uint32_t> words_;
  const Chunk& chunk_;
  const Effect* const effects_;
  const BranchRecord* const records_;
  PacketTimes& times_;
  RecordWriter& out_;
  std::uint64_t time_;
  std::uint32_t open_;
  std::uint8_t flags_ = 0;
  Address* returned_to_ = nullptr;  // of a return in the buffer: where the next effect starts
};

void SegmentPath::records(ByteSpan trace, const DecoderConfig& config,
                          std::vector<BranchRecord>& out) const {
  out.reserve(out.size() + totals_.records);
  PacketTimes times(trace, segment_, config);
  RecordWriter writer(out);
  for (const Chunk& chunk : chunks_) {
    if (chunk.timed) {
      times.seek(chunk.start.offset_bytes);
      Expander<true>(*this, chunk, times, writer).run();
    } else if (chunk.word_count != 0) {
      Expander<false>(*this, chunk, times, writer).run();
    }
    writer.append(std::span(records_).subspan(chunk.first_record, chunk.record_count));
  }
}

std::vector<BranchRecord> join_records(std::span<const SegmentPath> paths, ByteSpan trace,
                                       const DecoderConfig& config) {
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
                     kFlagAsync | kFlagSynthetic,
                     0});
    std::size_t first = out.size();
    if (path.started_at() && stopped != path.started_at()) {
      out.push_back(
          {{}, *path.started_at(), path.start_time(), 0, RecordKind::kEnable, kFlagSynthetic, 0});
      first = out.size();
      open = 0;
    }
    path.records(trace, config, out);
    bool goes_on = path.started_at() && first < out.size();
    if (goes_on) out[first].insns += open;
    stopped = path.stopped_at();
    open = path.open_insns() + (first == out.size() ? open : 0);
  }
  return out;
}

}  // namespace tailtrace::pt
