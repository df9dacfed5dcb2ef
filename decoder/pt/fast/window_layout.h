// WindowLayout: finds places for the windows of states (row.h), across each other but so that no
// two rows have the same slot.
//
// A window has a slot for each TNT byte, and a state has rows for few of them: the others' rows go
// between. First come, first served, not far from the end, so that rows of states that were met one
// after the other share cache lines, and hardly a slot stays empty.
//
// Threading: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tailtrace::pt {

// From the first slot of a window to the row of a TNT byte.
constexpr std::size_t window_offset(std::uint8_t bits) { return bits >> 1; }
constexpr std::size_t kWindow_slots = 1u << 7;

class WindowLayout {
 public:
  // Windows begin at `first` or behind. From `dense_limit` on they lie at each slot, whatever rows
  // they have: rows that hardly fit beside each other, as no program has them, take no more.
  WindowLayout(std::size_t first, std::size_t dense_limit)
      : first_(first), end_(first), dense_limit_(dense_limit) {}

  // Where a window with rows of these TNT bytes begins; no other begins there.
  std::size_t add(std::span<const std::uint8_t> symbols);

  // Behind all windows' beginnings, and all rows but those behind the limit.
  std::size_t end() const { return end_; }

 private:
  // Slots, 64 to a word.
  class Bits {
   public:
    static constexpr std::size_t kAtOnce = 64;
    // The others REQUIRE room for their slots.
    void make_room(std::size_t slots);
    void set(std::size_t slot) { words_[slot / kAtOnce] |= 1ull << slot % kAtOnce; }
    // 64 slots; the lowest bit is `first`.
    std::uint64_t from(std::size_t first) const {
      const std::size_t word = first / kAtOnce, bit = first % kAtOnce;
      return words_[word] >> bit | words_[word + 1] << 1 << (kAtOnce - 1 - bit);
    }

   private:
    std::vector<std::uint64_t> words_;
  };

  std::size_t fit(std::size_t from, std::span<const std::uint8_t> symbols) const;

  // How far back holes are looked for.
  static constexpr std::size_t kReach_slots = 256;
  // How far behind the end anything may be looked at: there a window surely fits.
  static constexpr std::size_t kAhead_slots = kWindow_slots + 3 * Bits::kAtOnce;

  std::size_t first_, end_, dense_limit_;
  Bits taken_, begun_;
};

}  // namespace tailtrace::pt
