#include "decoder/pt/stretch_records.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
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

namespace {

constexpr std::size_t kMaxQuiet_bytes = 9;

// How long packets are that make words, by their first byte: short TNTs, TIPs that have an address,
// and those that pause. 0 for others.
constexpr auto kQuietLengths = [] {
  constexpr std::uint8_t kTipSizes[8] = {0, 3, 5, 7, 7, 0, kMaxQuiet_bytes, 0};
  std::array<std::uint8_t, 256> lengths{};
  for (std::size_t head = 0; head < lengths.size(); ++head) {
    const std::size_t opcode = head & 0x1f;
    if ((head & 1) == 0 && head > 2) lengths[head] = 1;
    if (opcode == 0x0d || opcode == 0x11 || opcode == 0x01) lengths[head] = kTipSizes[head >> 5];
  }
  lengths[0x01] = 1;  // TIP.PGD without an address
  return lengths;
}();

}  // namespace

// The most frequent packets, without taking them apart, and CYCs before them.
bool StretchRecords::PacketTimes::skip_common() {
  const std::uint8_t* bytes = packets_.bytes().data();
  std::size_t offset = packets_.offset(), size = packets_.size_bytes();
  while (offset < size && (bytes[offset] & 7) == 3) {  // CYC of one byte
    clock_.take_cyc(bytes[offset++] >> 3);
    fresh_ = true;
  }
  const std::size_t length = offset < size ? kQuietLengths[bytes[offset]] : 0;
  bool whole = length != 0 && offset + length <= size;
  packets_.seek(whole ? offset + length : offset);
  return whole;
}

std::size_t StretchRecords::PacketTimes::skip_quiet() {
  const std::uint8_t* bytes = packets_.bytes().data();
  std::size_t offset = packets_.offset(), count = 0;
  for (; offset + kMaxQuiet_bytes <= packets_.size_bytes(); ++count) {
    const std::size_t length = kQuietLengths[bytes[offset]];
    if (length == 0) break;
    offset += length;
  }
  packets_.seek(offset);
  return count;
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
  *open_.returned_to = at().value;
  open_.returned_to = &nowhere_;
  return static_cast<std::size_t>(end - to.data());
}

template <bool kTimed>
BranchRecord* StretchRecords::expand_all(BranchRecord* to, const BranchRecord* full) {
  while (!done() && to <= full) {
    if (is_quiet()) to = expand_quiet<kTimed>(to, full);
    if (done() || to > full) break;
    if ((words_[next_] & kPathFirst) != 0) next_packet<kTimed>();
    to = expand_told(effect_at(next_++), to);
  }
  return to;
}

// Branches before the first that the packet told have the time of the packet before.
BranchRecord* StretchRecords::expand_told(const Effect& effect, BranchRecord* to) {
  BranchRecord* behind = expand(effect, Stamp(now_), to, open_);
  const std::uint32_t lead = untold_ ? effect.lead_count : 0;
  const bool exact = before_.exact && before_.ticks != 0;
  for (std::uint32_t i = 0; i < lead; ++i) {
    const std::uint8_t flags = records_[effect.first_record + i].flags;
    to[i].time = before_.ticks;
    to[i].flags = static_cast<std::uint8_t>(exact ? flags : flags & ~kFlagTimeExact);
  }
  untold_ = untold_ && !effect.decides;
  return behind;
}

// As long as nothing tells another time. Effects and records lie anywhere in memory, and are known
// long before.
template <bool kTimed>
BranchRecord* StretchRecords::expand_quiet(BranchRecord* to, const BranchRecord* full) {
  constexpr std::size_t kAhead = 16;
  const Stamp stamp(now_);
  const std::size_t last = words_.size() - 1;
  std::size_t next = next_, quiet = quiet_;
  Open open = open_;  // what is written below could be any of our members, as far as anybody knows
  for (; next <= last && to <= full; ++next) {
    const std::size_t begins = kTimed ? words_[next] >> 31 : 0;
    if (begins > quiet) [[unlikely]]
      if ((quiet = times_.skip_quiet()) == 0) break;
    quiet -= begins;
    __builtin_prefetch(&effect_at(std::min(next + 2 * kAhead, last)));
    __builtin_prefetch(records_ + effect_at(std::min(next + kAhead, last)).first_record);
    to = expand(effect_at(next), stamp, to, open);
  }
  next_ = next;
  quiet_ = quiet;
  open_ = open;
  return to;
}

// Most effects have two records at most. Pairs are copied: asking how many there are costs more.
[[gnu::always_inline]] inline BranchRecord* StretchRecords::expand(const Effect& effect,
                                                                   const Stamp& stamp,
                                                                   BranchRecord* to, Open& open) {
  constexpr std::uint32_t kPair = 2;
  const BranchRecord* from = records_ + effect.first_record;
  const std::uint32_t count = effect.record_count;
  *open.returned_to = effect.start;
  if (effect.first_record + count + kPair > record_count_) [[unlikely]] {
    for (std::uint32_t i = 0; i < count; ++i) stamp.copy(from[i], to[i]);
  } else {
    std::uint32_t i = 0;
    do {
      stamp.copy(from[i], to[i]);
      stamp.copy(from[i + 1], to[i + 1]);
    } while ((i += kPair) < count);
  }
  to->insns += open.insns;
  open.insns = (count == 0 ? open.insns : 0) + effect.tail_insns;
  open.returned_to = effect.returns ? &to[std::size_t{count} - 1].to.value : &nowhere_;
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
