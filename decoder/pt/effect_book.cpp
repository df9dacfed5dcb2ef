#include "decoder/pt/effect_book.h"

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

std::uint32_t EffectBook::add(Effect effect, std::span<const BranchRecord> records) {
  effect.record_count = records.size() & Effect::kMaxRecords;
  const std::size_t place = size_bytes_;
  size_bytes_ += sizeof effect + records.size() * sizeof(TimelessRecord);
  std::uint8_t* to = bytes_.data() + place;
  std::memcpy(to, &effect, sizeof effect);
  to += sizeof effect;
  for (const BranchRecord& record : records) {
    const TimelessRecord timeless{record.from, record.to,    record.insns,
                                  record.kind, record.flags, record.extra};
    std::memcpy(to, &timeless, sizeof timeless);
    to += sizeof timeless;
  }
  places_.push_back(static_cast<std::uint32_t>(place));
  near_.push_back(all_near(effect, records));
  return static_cast<std::uint32_t>(places_.size() - 1);
}

}  // namespace tailtrace::pt
