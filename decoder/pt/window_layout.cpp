#include "decoder/pt/window_layout.h"

#include <algorithm>
#include <bit>

namespace tailtrace::pt {

void WindowLayout::Bits::set(std::size_t slot) {
  std::size_t word = slot / kAtOnce;
  if (word >= words_.size()) words_.resize(2 * word + 2);
  words_[word] |= 1ull << slot % kAtOnce;
}

std::uint64_t WindowLayout::Bits::from(std::size_t first) const {
  std::size_t word = first / kAtOnce, bit = first % kAtOnce;
  auto at = [this](std::size_t i) { return i < words_.size() ? words_[i] : 0; };
  return at(word) >> bit | at(word + 1) << 1 << (kAtOnce - 1 - bit);
}

std::size_t WindowLayout::add(std::span<const std::uint8_t> symbols) {
  if (end_ >= dense_limit_) return end_++;
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
