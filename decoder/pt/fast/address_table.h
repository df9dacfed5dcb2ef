// AddressTable: finds a number by an address. What the fast path remembers is found through it.
//
// Slots follow each other where two addresses have the same; it never forgets one address alone.
//
// Threading: one thread at a time puts numbers; others may look meanwhile, but not while it grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tailtrace::pt {

class AddressTable {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // REQUIRES: a power of two.
  explicit AddressTable(std::size_t slots = kLeastSlots) : slots_(slots) {}

  bool is_half_full() const { return 2 * size_ >= slots_.size(); }
  bool has_room() const { return size_ < slots_.size() / 8 * 7; }

  // kNone when nothing was put there.
  std::uint32_t find(std::uint64_t address) const {
    for (std::size_t at = home(address);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      const std::uint32_t number = __atomic_load_n(&slot.number, __ATOMIC_ACQUIRE);
      if (number == kNone || __atomic_load_n(&slot.address, __ATOMIC_RELAXED) == address)
        return number;
    }
  }

  // REQUIRES: has_room(); the address is not there; a number other than kNone.
  void put(std::uint64_t address, std::uint32_t number) {
    ++size_;
    place({address, number});
  }

  void clear() {
    slots_.assign(kLeastSlots, {});
    size_ = 0;
  }

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number != kNone) place(slot);
  }

 private:
  static constexpr std::size_t kLeastSlots = 1u << 10;

  struct Slot {
    std::uint64_t address = 0;
    std::uint32_t number = kNone;
  };

  // Four slots are a line of memory. Addresses near each other share one: they are asked for one
  // after the other.
  std::size_t home(std::uint64_t address) const {
    const std::uint64_t line = (address >> 6) * 0x9e3779b97f4a7c15ull >> 32;
    return (line << 2 | (address >> 4 & 3)) & (slots_.size() - 1);
  }

  void place(const Slot& slot) {
    std::size_t at = home(slot.address);
    while (slots_[at].number != kNone) at = (at + 1) & (slots_.size() - 1);
    __atomic_store_n(&slots_[at].address, slot.address, __ATOMIC_RELAXED);
    __atomic_store_n(&slots_[at].number, slot.number, __ATOMIC_RELEASE);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace tailtrace::pt
