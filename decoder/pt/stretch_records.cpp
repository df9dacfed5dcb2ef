#include "decoder/pt/stretch_records.h"

#include <emmintrin.h>

#include <cstddef>

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

namespace {

constexpr std::size_t kLast = offsetof(BranchRecord, insns);
constexpr std::uint64_t kExactInLast = std::uint64_t{kFlagTimeExact}
                                       << (8 * (offsetof(BranchRecord, flags) - kLast));

}  // namespace

// The time is put in, and stays exact only where the record in the book says that it may be.
struct StretchRecords::Stamp {
  __m128i keep, put;

  explicit Stamp(const PacketTime& time) {
    bool exact = time.exact && time.ticks != 0;
    std::uint64_t mask = exact ? ~std::uint64_t{0} : ~kExactInLast;
    keep = _mm_set_epi64x(static_cast<long long>(mask), 0);
    put = _mm_set_epi64x(0, static_cast<long long>(time.ticks));
  }

  void copy(const BranchRecord& from, BranchRecord& to) const {
    const auto* halves = reinterpret_cast<const __m128i*>(&from);
    auto* out = reinterpret_cast<__m128i*>(&to);
    __m128i second = _mm_and_si128(_mm_loadu_si128(halves + 1), keep);
    _mm_storeu_si128(out, _mm_loadu_si128(halves));
    _mm_storeu_si128(out + 1, _mm_or_si128(second, put));
  }
};

StretchRecords::StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words,
                               ByteSpan trace, const DecoderConfig& config)
    : stretch_(stretch),
      words_(words),
      effects_(stretch.book->effects.data()),
      records_(stretch.book->records.data()),
      record_count_(stretch.book->records.size()),
      times_(trace, stretch.start, config),
      before_(stretch.start.before),
      now_(stretch.start.before) {
  static_assert(Counts::kMaxBranches + 2 <= kSlack);
}

std::size_t StretchRecords::take(std::span<BranchRecord> to) {
  if (to.size() < kSlack) return 0;
  const BranchRecord* full = to.data() + (to.size() - kSlack);
  BranchRecord* end =
      stretch_.end.timed ? expand_all<true>(to.data(), full) : expand_all<false>(to.data(), full);
  *returned_to_ = at().value;
  returned_to_ = &nowhere_;
  return static_cast<std::size_t>(end - to.data());
}

template <bool kTimed>
BranchRecord* StretchRecords::expand_all(BranchRecord* to, const BranchRecord* full) {
  for (; !done() && to <= full && (kTimed || !is_steady()); ++next_) {
    if ((words_[next_] & kPathFirst) != 0) next_packet<kTimed>();
    to = expand<false>(effect_at(next_), Stamp(now_), to);
  }
  if (kTimed) return to;
  // From the second packet on nothing tells another time. Effects and records lie anywhere in
  // memory, and are known long before.
  constexpr std::size_t kAhead = 16;
  const Stamp stamp(now_);
  for (; next_ + 2 * kAhead < words_.size() && to <= full; ++next_) {
    __builtin_prefetch(&effect_at(next_ + 2 * kAhead));
    __builtin_prefetch(records_ + effect_at(next_ + kAhead).first_record);
    to = expand<true>(effect_at(next_), stamp, to);
  }
  for (; !done() && to <= full; ++next_) to = expand<true>(effect_at(next_), stamp, to);
  return to;
}

// Most effects have two records at most. Two are always copied: asking how many costs more.
template <bool kSteady>
[[gnu::always_inline]] inline BranchRecord* StretchRecords::expand(const Effect& effect,
                                                                   const Stamp& stamp,
                                                                   BranchRecord* to) {
  constexpr std::uint32_t kAlways = 2;
  const BranchRecord* from = records_ + effect.first_record;
  const std::uint32_t count = effect.record_count;
  *returned_to_ = effect.start;
  bool at_book_end = effect.first_record + kAlways > record_count_;
  if (!at_book_end) [[likely]]
    for (std::uint32_t i = 0; i < kAlways; ++i) stamp.copy(from[i], to[i]);
  for (std::uint32_t i = at_book_end ? 0 : kAlways; i < count; ++i) stamp.copy(from[i], to[i]);
  if (!kSteady && untold_) {
    const Stamp before(before_);
    for (std::uint32_t i = 0; i < effect.lead_count; ++i) before.copy(from[i], to[i]);
  }
  to->insns += open_;
  open_ = (count == 0 ? open_ : 0) + effect.tail_insns;
  returned_to_ = effect.returns ? &to[std::size_t{count} - 1].to.value : &nowhere_;
  if (!kSteady) untold_ = untold_ && !effect.decides;
  return to + count;
}

template <bool kTimed>
void StretchRecords::next_packet() {
  bool first = packet_count_++ == 0;
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
}

}  // namespace tailtrace::pt
