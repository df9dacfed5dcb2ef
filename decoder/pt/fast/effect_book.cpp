#include "decoder/pt/fast/effect_book.h"

#include <cstddef>

namespace tailtrace::pt {
namespace {

bool all_near(const Effect& effect, std::span<const BranchRecord> records) {
  for (const BranchRecord& record : records) {
    const bool leads_on = effect.returns && &record == &records.back();
    if (!is_near_branch(record) || (record.to.is_null() && !leads_on)) return false;
  }
  return true;
}

}  // namespace

// A part goes on behind its end when that is the book's end.
void EffectBook::extend(Part& part) {
  if (part.number == part.end) {
    part.number = static_cast<std::uint32_t>(size_);
    size_ += kPartEffects;
    part.end = static_cast<std::uint32_t>(size_);
  }
  if (part.end_place - part.place >= kMaxEffect_bytes) return;
  if (part.end_place != size_bytes_) part.place = size_bytes_;
  size_bytes_ += kMaxEffect_bytes;
  part.end_place = size_bytes_;
}

std::uint32_t EffectBook::add(Part& part, Effect effect, std::span<const BranchRecord> records) {
  effect.made_bytes = static_cast<std::uint16_t>(records.size() * sizeof(BranchRecord));
  effect.next_start_bytes = static_cast<std::uint16_t>(
      offsetof(BranchRecord, to) + (records.size() - effect.returns) * sizeof(BranchRecord));
  places_[part.number] = static_cast<std::uint32_t>(part.place);
  near_[part.number] = all_near(effect, records);
  std::uint8_t* to = bytes_.data() + part.place;
  std::memcpy(to, &effect, sizeof effect);
  to += sizeof effect;
  for (const BranchRecord& record : records) {
    const TimelessRecord timeless{record.from, record.to,    record.insns,
                                  record.kind, record.flags, record.extra};
    std::memcpy(to, &timeless, sizeof timeless);
    to += sizeof timeless;
  }
  part.place = static_cast<std::size_t>(to - bytes_.data());
  return part.number++;
}

}  // namespace tailtrace::pt
