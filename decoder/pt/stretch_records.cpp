#include "decoder/pt/stretch_records.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tailtrace::pt {

// --- Times of packets ------------------------------------------------------------------------

StretchRecords::PacketTimes::PacketTimes(ByteSpan trace, const PathStart& start,
                                         const DecoderConfig& config)
    : packets_(trace, config.errata.skz84), clock_(start.clock), fresh_(start.fresh_time) {
  packets_.seek(start.offset_bytes);
}

void StretchRecords::PacketTimes::next() {
  while (!skip_common() && step() && !at_branch_) {
  }
  exact_ = fresh_;
  fresh_ = false;
}

// The most frequent packets, without taking them apart: a short TNT, TIP, and CYCs before them.
bool StretchRecords::PacketTimes::skip_common() {
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
  packets_.seek(whole ? offset + length : offset);
  return whole;
}

bool StretchRecords::PacketTimes::step() {
  Packet packet;
  if (packets_.next(packet) != ReadStatus::kOk) return false;
  at_branch_ = packet.kind == PacketKind::kTnt || packet.kind == PacketKind::kTip ||
               packet.kind == PacketKind::kTipPgd || packet.kind == PacketKind::kTipPge;
  fresh_ |= packet.kind == PacketKind::kCyc;
  if (!at_branch_) clock_.take(packet, false);
  return true;
}

// --- Records ---------------------------------------------------------------------------------

class StretchRecords::Buffer {
 public:
  explicit Buffer(std::vector<BranchRecord>& out) : out_(out) {}
  ~Buffer() { flush(); }

  // Room for `count` records, at most kMost, behind the last one; counted by grow().
  static constexpr std::size_t kMost = 512;
  BranchRecord* room(std::size_t count) {
    if (size_ + count > std::size(buffer_)) flush();
    return buffer_ + size_;
  }
  void grow(std::size_t count) { size_ += count; }

 private:
  void flush() {
    out_.insert(out_.end(), buffer_, buffer_ + size_);
    size_ = 0;
  }

  std::vector<BranchRecord>& out_;
  std::size_t size_ = 0;
  BranchRecord buffer_[2 * kMost];
};

namespace {

constexpr std::size_t kLast = offsetof(BranchRecord, insns);
constexpr std::uint64_t kExactInLast = std::uint64_t{kFlagTimeExact}
                                       << (8 * (offsetof(BranchRecord, flags) - kLast));

// The time stays exact only where the record in the book says that it may be.
std::uint64_t mask_of(const PacketTime& time) {
  return time.exact && time.ticks != 0 ? ~std::uint64_t{0} : ~kExactInLast;
}

inline void copy_records(const BranchRecord* from, std::size_t count, const PacketTime& time,
                         BranchRecord* to) {
  const std::uint64_t mask = mask_of(time);
  for (std::size_t i = 0; i < count; ++i) {
    to[i].from = from[i].from;
    to[i].to = from[i].to;
    to[i].time = time.ticks;
    // The last eight bytes at once: a byte read back from a wider store waits for it.
    std::uint64_t last;
    std::memcpy(&last, &from[i].insns, sizeof last);
    last &= mask;
    std::memcpy(&to[i].insns, &last, sizeof last);
  }
}

}  // namespace

StretchRecords::StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words,
                               ByteSpan trace, const DecoderConfig& config)
    : stretch_(stretch),
      words_(words),
      effects_(stretch.book->effects.data()),
      records_(stretch.book->records.data()),
      times_(trace, stretch.start, config),
      before_(stretch.start.before),
      now_(stretch.start.before) {
  static_assert(Counts::kMaxBranches + 2 <= Buffer::kMost);
}

void StretchRecords::take(std::size_t count, std::vector<BranchRecord>& out) {
  std::size_t end = next_ + std::min(count, words_.size() - next_);
  Buffer buffer(out);
  stretch_.end.timed ? expand_all<true>(end, buffer) : expand_all<false>(end, buffer);
  next_ = end;
  if (returned_to_ != nullptr) *returned_to_ = at();
  returned_to_ = nullptr;
}

template <bool kTimed>
void StretchRecords::expand_all(std::size_t end, Buffer& out) {
  // Effects and records lie anywhere in memory, and are known long before.
  constexpr std::size_t kAhead = 8;
  std::size_t i = next_;
  for (; i + 2 * kAhead < end; ++i) {
    __builtin_prefetch(&effect_at(i + 2 * kAhead));
    __builtin_prefetch(records_ + effect_at(i + kAhead).first_record);
    expand<kTimed>(i, out);
  }
  for (; i < end; ++i) expand<kTimed>(i, out);
}

template <bool kTimed>
[[gnu::always_inline]] inline void StretchRecords::expand(std::size_t i, Buffer& out) {
  if ((words_[i] & kPathFirst) != 0) next_packet<kTimed>(first_packet_);
  const Effect& effect = effect_at(i);
  if (returned_to_ != nullptr) returned_to_->value = effect.start;
  returned_to_ = nullptr;
  if (effect.record_count == 0) {
    open_ += effect.insns;
  } else {
    const BranchRecord* from = records_ + effect.first_record;
    BranchRecord* to = out.room(effect.record_count);
    copy_records(from, effect.record_count, now_, to);
    if (untold_) [[unlikely]]
      copy_records(from, effect.lead_count, before_, to);
    to->insns += open_;
    open_ = effect.tail_insns;
    if (effect.returns) returned_to_ = &to[effect.record_count - 1].to;
    out.grow(effect.record_count);
  }
  untold_ = untold_ && !effect.decides;
}

template <bool kTimed>
[[gnu::always_inline]] inline void StretchRecords::next_packet(bool first) {
  if (kTimed) {
    before_ = now_;
    times_.next();
    now_ = {not_before(now_.ticks, times_.time()), times_.exact()};
    untold_ = true;
  } else {
    // Nothing tells another time behind the first packet.
    const PathStart& start = stretch_.start;
    std::uint64_t ticks = start.clock.known() ? start.clock.ticks() : 0;
    now_ = {not_before(start.before.ticks, ticks), first && start.fresh_time};
    untold_ = first;
  }
  first_packet_ = false;
}

}  // namespace tailtrace::pt
