#include "decoder/pt/fast/window_layout.h"

#include <algorithm>
#include <bit>

namespace tailtrace::pt {

void WindowLayout::Bits::make_room(std::size_t slots) {
  if (slots > words_.size() * kAtOnce) words_.resize(2 * slots / kAtOnce + 1);
}

std::size_t WindowLayout::add(std::span<const std::uint8_t> symbols) {
  if (end_ >= dense_limit_) return end_++;
  taken_.make_room(end_ + kAhead_slots);
  begun_.make_room(end_ + kAhead_slots);
  std::size_t window = fit(std::max(first_ + kReach_slots, end_) - kReach_slots, symbols);
  begun_.set(window);
  end_ = std::max(end_, window + 1);
  for (std::uint8_t symbol : symbols) {
    std::size_t slot = window + window_offset(symbol);
    taken_.set(slot);
    end_ = std::max(end_, slot + 1);
  }
  return window;
}

// The first one at or behind `from`.
std::size_t WindowLayout::fit(std::size_t from, std::span<const std::uint8_t> symbols) const {
  for (std::size_t window = from;; window += Bits::kAtOnce) {
    std::uint64_t blocked = begun_.from(window);
    for (std::uint8_t symbol : symbols) blocked |= taken_.from(window + window_offset(symbol));
    if (~blocked != 0) return window + static_cast<std::size_t>(std::countr_one(blocked));
  }
}

}  // namespace tailtrace::pt
