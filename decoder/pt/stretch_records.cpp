#include "decoder/pt/stretch_records.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <bit>
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

// Records that are copied in one go.
constexpr std::uint32_t kAtOnce = 4;

constexpr std::uint8_t kMtcHead = 0x59;
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

constexpr std::size_t kTntRun_bytes = 16;

// How many short TNTs begin here: bytes that are even and above 2.
std::size_t tnt_run(const std::uint8_t* at) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i odd = _mm_slli_epi16(bytes, 7);
  const __m128i small = _mm_cmpeq_epi8(_mm_and_si128(bytes, _mm_set1_epi8(static_cast<char>(0xfc))),
                                       _mm_setzero_si128());
  const int others = _mm_movemask_epi8(_mm_or_si128(odd, small));
  return static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(others) | 1u << 16));
}

}  // namespace

// The most frequent packets, without taking them apart, and what most often tells a time before
// them.
bool StretchRecords::PacketTimes::skip_common() {
  const std::uint8_t* bytes = packets_.bytes().data();
  std::size_t offset = packets_.offset(), size = packets_.size_bytes();
  for (; offset + 1 < size; ++offset) {
    const std::uint8_t head = bytes[offset];
    if ((head & 7) == 3) {  // CYC of one byte
      clock_.take_cyc(head >> 3);
      fresh_ = true;
    } else if (head == kMtcHead) {
      clock_.take_mtc(bytes[++offset]);
    } else {
      break;
    }
  }
  const std::size_t length = offset < size ? kQuietLengths[bytes[offset]] : 0;
  bool whole = length != 0 && offset + length <= size;
  packets_.seek(whole ? offset + length : offset);
  return whole;
}

std::size_t StretchRecords::PacketTimes::skip_quiet() {
  const std::uint8_t* bytes = packets_.bytes().data();
  std::size_t offset = packets_.offset(), count = 0;
  while (offset + kTntRun_bytes <= packets_.size_bytes()) {
    const std::size_t tnts = tnt_run(bytes + offset);
    offset += tnts;
    count += tnts;
    if (tnts == kTntRun_bytes) continue;
    const std::size_t length = kQuietLengths[bytes[offset]];
    if (length == 0 || offset + length > packets_.size_bytes()) break;
    offset += length;
    ++count;
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

// What a packet's time makes of a record: the time is put in, and stays exact only where the record
// says that it may be.
class StretchRecords::Stamp {
 public:
  explicit Stamp(const PacketTime& time) {
    if (!time.exact || time.ticks == 0) keep_flags_ = static_cast<std::uint8_t>(~kFlagTimeExact);
    const std::uint64_t keep = ~(std::uint64_t{static_cast<std::uint8_t>(~keep_flags_)}
                                 << (8 * (offsetof(TimelessRecord, flags) - kLast)));
    time_ = _mm_cvtsi64_si128(static_cast<long long>(time.ticks));
    keep_ = _mm_cvtsi64_si128(static_cast<long long>(keep));
  }

  // The record that lies at `from` in the book.
  [[gnu::always_inline]] void put(const std::uint8_t* from, BranchRecord& to) const {
    auto* out = reinterpret_cast<__m128i*>(&to);
    _mm_storeu_si128(out, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m128i last = _mm_and_si128(_mm_loadu_si64(from + kLast), keep_);
    _mm_storeu_si128(out + 1, _mm_unpacklo_epi64(time_, last));
  }

  std::uint8_t flags(std::uint8_t of_effect) const { return of_effect & keep_flags_; }

 private:
  static constexpr std::size_t kLast = offsetof(TimelessRecord, insns);
  std::uint8_t keep_flags_ = 0xff;
  __m128i time_, keep_;
};

StretchRecords::StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words,
                               ByteSpan trace, const DecoderConfig& config)
    : stretch_(stretch),
      words_(words),
      bytes_(stretch.book->bytes()),
      places_(stretch.book->places()),
      times_(trace, stretch.start, config),
      before_(stretch.start.before),
      now_(stretch.start.before) {
  static_assert(Counts::kMaxBranches + 2 + kAtOnce <= kSlack);
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
    to = expand_told(place_of(next_++), to);
  }
  return to;
}

// Branches before the first that the packet told have the time of the packet before.
BranchRecord* StretchRecords::expand_told(const std::uint8_t* place, BranchRecord* to) {
  BranchRecord* behind = expand(place, Stamp(now_), to, open_);
  const Effect effect = Effect::at(place);
  const std::uint32_t lead = untold_ ? effect.lead_count : 0;
  const Stamp stamp(before_);
  for (std::uint32_t i = 0; i < lead; ++i) {
    to[i].time = before_.ticks;
    to[i].flags = stamp.flags(Effect::flags_of(place, i));
  }
  untold_ = untold_ && effect.decides == 0;
  return behind;
}

// As long as nothing tells another time. Effects lie anywhere in memory, and are known long before.
template <bool kTimed>
BranchRecord* StretchRecords::expand_quiet(BranchRecord* to, const BranchRecord* full) {
  constexpr std::size_t kAhead = 24, kLine_bytes = 64;
  const Stamp stamp(now_);
  // What is written below could be any of our members, as far as anybody knows.
  const std::uint8_t* const bytes = bytes_;
  const std::uint32_t *const places = places_, *const words = words_.data();
  const auto place_of = [=](std::size_t i) { return bytes + places[words[i] & kPathEffect]; };
  const std::size_t last = words_.size() - 1;
  std::size_t next = next_, quiet = quiet_;
  Open open = open_;
  for (; next <= last && to <= full; ++next) {
    const std::size_t begins = kTimed ? words[next] >> 31 : 0;
    if (begins > quiet) [[unlikely]]
      if ((quiet = times_.skip_quiet()) == 0) break;
    quiet -= begins;
    const std::uint8_t* ahead = place_of(std::min(next + kAhead, last));
    __builtin_prefetch(ahead);
    __builtin_prefetch(ahead + kLine_bytes);
    to = expand(place_of(next), stamp, to, open);
  }
  next_ = next;
  quiet_ = quiet;
  open_ = open;
  return to;
}

// Several records are copied at once: asking how many there are costs more.
[[gnu::always_inline]] inline BranchRecord* StretchRecords::expand(const std::uint8_t* place,
                                                                   const Stamp& stamp,
                                                                   BranchRecord* to, Open& open) {
  const Effect effect = Effect::at(place);
  const std::uint32_t count = effect.record_count;
  const std::uint8_t* from = place + sizeof effect;
  *open.returned_to = effect.start;
  std::uint32_t i = 0;
  do {
    stamp.put(from + i * sizeof(TimelessRecord), to[i]);
    stamp.put(from + (i + 1) * sizeof(TimelessRecord), to[i + 1]);
    stamp.put(from + (i + 2) * sizeof(TimelessRecord), to[i + 2]);
    stamp.put(from + (i + 3) * sizeof(TimelessRecord), to[i + 3]);
  } while ((i += kAtOnce) < count);
  to->insns += open.insns;
  // Both without asking, as what comes cannot be guessed. An effect that does not return has the
  // next one's start written where that puts its first record.
  open.insns = (open.insns & (0u - (count == 0))) + effect.tail_insns;
  open.returned_to = &to[count - effect.returns].to.value;
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
