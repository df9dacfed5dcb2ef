#include "decoder/pt/fast/stretch_records.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace tailtrace::pt {

namespace {

// Records that are copied in one go, and where words hardly make more than one.
constexpr std::uint32_t kAtOnce = 3, kAtOnceOfFew = 1;

}  // namespace

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

  // The record that lies at `from` in the book, and instructions that come on top.
  [[gnu::always_inline]] void put(const std::uint8_t* from, BranchRecord& to,
                                  std::uint32_t more_insns = 0) const {
    auto* out = reinterpret_cast<__m128i*>(&to);
    _mm_storeu_si128(out, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const __m128i told = _mm_and_si128(_mm_loadu_si64(from + kLast), keep_);
    const __m128i last = _mm_add_epi32(told, _mm_cvtsi32_si128(static_cast<int>(more_insns)));
    _mm_storeu_si128(out + 1, _mm_unpacklo_epi64(time_, last));
  }

  // So many, one behind the other; what comes on top is the first one's.
  template <std::uint32_t kCount>
  [[gnu::always_inline]] void put_some(const std::uint8_t* from, BranchRecord* to,
                                       std::uint32_t more_insns = 0) const {
    put(from, to[0], more_insns);
    if constexpr (kCount > 1) put_some<kCount - 1>(from + sizeof(TimelessRecord), to + 1);
  }

  std::uint8_t flags(std::uint8_t of_effect) const { return of_effect & keep_flags_; }

 private:
  static constexpr std::size_t kLast = offsetof(TimelessRecord, insns);
  std::uint8_t keep_flags_ = 0xff;
  __m128i time_, keep_;
};

StretchRecords::StretchRecords(const Stretch& stretch, std::span<const std::uint32_t> words,
                               std::span<const TimeMark> marks)
    : stretch_(stretch),
      words_(words),
      bytes_(stretch.book->bytes()),
      places_(stretch.book->places()),
      marks_(marks),
      makes_few_(2 * stretch.end.totals.records < 3 * words.size()),
      before_(stretch.start.before),
      now_(stretch.start.before) {
  static_assert(Counts::kMaxBranches + 2 + kAtOnce <= kSlack);
}

std::size_t StretchRecords::take(std::span<BranchRecord> to) {
  if (to.size() < kSlack) return 0;
  BranchRecord* end = expand_all(to.data(), to.data() + (to.size() - kSlack));
  *open_.returned_to = at().value;
  open_.returned_to = &nowhere_;
  return static_cast<std::size_t>(end - to.data());
}

BranchRecord* StretchRecords::expand_all(BranchRecord* to, const BranchRecord* full) {
  while (!done() && to <= full) {
    if (is_quiet())
      to = makes_few_ ? expand_quiet<kAtOnceOfFew>(to, full) : expand_quiet<kAtOnce>(to, full);
    if (done() || to > full) break;
    if ((words_[next_] & kPathFirst) != 0) next_packet();
    to = expand_told(place_of(next_++), to);
  }
  return to;
}

BranchRecord* StretchRecords::expand_told(const std::uint8_t* place, BranchRecord* to) {
  BranchRecord* behind = expand<kAtOnce>(place, Stamp(now_), to, open_);
  if (untold_) date_back(place, to);
  untold_ = untold_ && Effect::at(place).decides == 0;
  return behind;
}

// Branches before the first that the packet told have the time of the packet before.
void StretchRecords::date_back(const std::uint8_t* place, BranchRecord* records) const {
  const Stamp stamp(before_);
  const std::uint32_t lead = Effect::at(place).lead_count;
  for (std::uint32_t i = 0; i < lead; ++i) {
    records[i].time = before_.ticks;
    records[i].flags = stamp.flags(Effect::flags_of(place, i));
  }
}

// As long as no time is exact, and what has another time tells a branch. Effects lie anywhere in
// memory, and are known long before; where each is done with soon, the processor itself comes to
// those ahead in time.
template <std::uint32_t kCount>
BranchRecord* StretchRecords::expand_quiet(BranchRecord* to, const BranchRecord* full) {
  constexpr std::size_t kAhead = 24, kLine_bytes = 64;
  Stamp stamp(now_);
  // What is written below could be any of our members, as far as anybody knows.
  const std::uint8_t* const bytes = bytes_;
  const std::uint32_t *const places = places_, *const words = words_.data();
  const auto place_of = [=](std::size_t i) { return bytes + places[words[i] & kPathEffect]; };
  const std::size_t known = words_.size() - std::min(words_.size(), kAhead);
  std::size_t next = next_, end = next_mark();
  Open open = open_;
  while (to <= full) {
    // So many words have room.
    const std::size_t room = static_cast<std::size_t>(full - to) / kSlack + 1;
    const std::size_t until = std::min(end, next + room);
    for (const std::size_t stop = std::min(known, until); next < stop; ++next) {
      if constexpr (kCount != kAtOnceOfFew) {
        const std::uint8_t* ahead = place_of(next + kAhead);
        __builtin_prefetch(ahead);
        __builtin_prefetch(ahead + kLine_bytes);
      }
      to = expand<kCount>(place_of(next), stamp, to, open);
    }
    for (; next < until; ++next) to = expand<kCount>(place_of(next), stamp, to, open);
    if (next < end) continue;
    if (to > full || !stays_quiet(next)) break;
    next_ = next;
    next_packet();
    stamp = Stamp(now_);
    const std::uint8_t* const place = place_of(next++);
    BranchRecord* const behind = expand<kCount>(place, stamp, to, open);
    date_back(place, to);
    untold_ = false;
    to = behind;
    end = next_mark();
  }
  next_ = next;
  open_ = open;
  return to;
}

// So many records are copied without asking how many there are, which cannot be guessed.
template <std::uint32_t kCount>
BranchRecord* StretchRecords::expand(const std::uint8_t* place, const Stamp& stamp,
                                     BranchRecord* to, Open& open) {
  const Effect effect = Effect::at(place);
  const std::uint8_t* from = place + sizeof effect;
  *open.returned_to = effect.start;
  stamp.put_some<kCount>(from, to, open.insns);
  const std::size_t made_bytes = effect.made_bytes;
  if (made_bytes > kCount * sizeof(BranchRecord)) [[unlikely]]
    for (std::size_t i = kCount; i * sizeof(BranchRecord) < made_bytes; i += kCount)
      stamp.put_some<kCount>(from + i * sizeof(TimelessRecord), to + i);
  // Both without asking, as what comes cannot be guessed.
  open.insns = (open.insns & (0u - (made_bytes == 0))) + effect.tail_insns;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(to);
  open.returned_to = reinterpret_cast<std::uint64_t*>(bytes + effect.next_start_bytes);
  return reinterpret_cast<BranchRecord*>(bytes + made_bytes);
}

// Of several marks before a packet the newest holds.
void StretchRecords::next_packet() {
  const PacketTime& first = stretch_.start.first;
  std::optional<PacketTime> told;
  if (!std::exchange(begun_, true)) told = first;
  for (; !marks_.empty() && marks_[0].word <= next_; marks_ = marks_.subspan(1)) {
    const auto since = static_cast<std::uint64_t>(std::int64_t{marks_[0].since_start});
    told = PacketTime{first.ticks + since, marks_[0].exact != 0};
  }
  before_ = now_;
  now_.exact = false;
  if (told) now_ = {not_before(now_.ticks, told->ticks), told->exact};
  untold_ = true;
}

}  // namespace tailtrace::pt
