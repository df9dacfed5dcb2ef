// RowTable: rows by a key, for what has no slot of its own in a window.
//
// A row lies in the slot that its key's hash names, or behind it in the next free one.
//
// Threading: one thread at a time puts rows; others may look meanwhile, but not while it grows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decoder/pt/fast/large_array.h"
#include "decoder/pt/fast/row_bits.h"

namespace tailtrace::pt {

template <class Key>
class RowTable {
 public:
  struct Entry {
    std::uint64_t bits = 0;  // of the key
    std::uint64_t row = 0;   // with the key's tag; 0: empty

    Key key() const { return Key::from(bits, row & RowBits::kTagMask); }
  };

  // REQUIRES: a power of two.
  explicit RowTable(std::size_t slots) : entries_(slots) {
    // Memory that is read before it is written is faulted in twice.
    clear();
  }

  std::size_t size() const { return size_; }
  bool is_half_full() const { return 2 * size_ > entries_.size(); }
  bool has_room() const { return size_ < entries_.size() / 8 * 7; }
  std::span<const Entry> entries() const { return {entries_.data(), entries_.size()}; }

  // The two slots where a key is looked for first, for a loop that keeps this in registers.
  class View {
   public:
    View(const Entry* entries, std::size_t slots)
        : entries_(entries), mask_(static_cast<std::uint32_t>(slots - 1)) {}
    // 0 when other keys' rows lie there, or none.
    [[gnu::always_inline]] std::uint64_t find(const Key& key) const {
      const std::uint32_t at = key.hash();
      const std::uint64_t row = find_at(at, key);
      return row != 0 ? row : find_at(at + 1, key);
    }

   private:
    [[gnu::always_inline]] std::uint64_t find_at(std::uint32_t at, const Key& key) const {
      const Entry& entry = entries_[at & mask_];
      const std::uint64_t row = load_row(entry.row);
      return is_of(entry, row, key) ? row : 0;
    }

    const Entry* entries_;
    std::uint32_t mask_;
  };
  View view() const { return {entries_.data(), entries_.size()}; }

  // The row with its tag; 0 when it is not there.
  std::uint64_t find(const Key& key) const {
    for (std::size_t at = key.hash();; ++at) {
      const Entry& entry = entries_[at & (entries_.size() - 1)];
      const std::uint64_t row = load_row(entry.row);
      if (row == 0 || is_of(entry, row, key)) return row;
    }
  }

  // REQUIRES: has_room(); it is not there.
  void put(const Key& key, std::uint64_t row) {
    ++size_;
    place(key, row | key.tag());
  }

  // All rows, with their tags; it is empty then.
  std::vector<Entry> take() {
    std::vector<Entry> taken;
    taken.reserve(size_);
    for (const Entry& entry : entries())
      if (entry.row != 0) taken.push_back(entry);
    clear();
    return taken;
  }

  void clear() {
    std::fill_n(entries_.data(), entries_.size(), Entry{});
    size_ = 0;
  }

  void grow() {
    RowTable larger(2 * entries_.size());
    for (const Entry& entry : entries())
      if (entry.row != 0) larger.place(entry.key(), entry.row);
    entries_ = std::move(larger.entries_);
  }

 private:
  // REQUIRES: the row was read before.
  static bool is_of(const Entry& entry, std::uint64_t row, const Key& key) {
    return __atomic_load_n(&entry.bits, __ATOMIC_RELAXED) == key.bits() &&
           (row & RowBits::kTagMask) == key.tag();
  }

  void place(const Key& key, std::uint64_t row) {
    std::size_t at = key.hash();
    while (entries_[at & (entries_.size() - 1)].row != 0) ++at;
    Entry& entry = entries_[at & (entries_.size() - 1)];
    __atomic_store_n(&entry.bits, key.bits(), __ATOMIC_RELAXED);
    publish_row(entry.row, row);
  }

  LargeArray<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace tailtrace::pt
