// CompactPath: what the fast path (flow_fast.h) writes, a word for each TNT byte or TIP, and beside
// the words the times that timing packets told on the way.
//
// Threading: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tailtrace::pt {

// The time from a word on, as timing packets before the word's packet tell it.
struct TimeMark {
  std::uint32_t word : 31;   // since its stretch began
  std::uint32_t exact : 1;   // of that packet alone: a CYC is among them
  std::int32_t since_start;  // ticks of the clock, since that of the stretch's start
};
static_assert(sizeof(TimeMark) == 8);

// A vector that does not clear what it will be filled with.
template <class T>
class PathArray {
 public:
  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * sizeof(T); }
  std::span<const T> span() const { return {items_.get(), size_}; }
  void clear() { size_ = 0; }

  // Room for `count` items behind the end, which are counted by grow().
  T* room(std::size_t count) {
    if (size_ + count > capacity_) reallocate(std::max(size_ + count, capacity_ * 2));
    return items_.get() + size_;
  }
  void grow(std::size_t count) { size_ += count; }
  // As large as its content.
  PathArray copy() const {
    PathArray all;
    if (size_ != 0) std::copy_n(items_.get(), size_, all.room(size_));
    all.grow(size_);
    return all;
  }

 private:
  void reallocate(std::size_t capacity) {
    auto items = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy_n(items_.get(), size_, items.get());
    items_ = std::move(items);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> items_;
  std::size_t size_ = 0, capacity_ = 0;
};

struct CompactPath {
  PathArray<std::uint32_t> words;
  PathArray<TimeMark> marks;  // a stretch's in the order of their words

  void clear() {
    words.clear();
    marks.clear();
  }
  CompactPath copy() const { return {words.copy(), marks.copy()}; }
  std::size_t size_bytes() const { return words.size_bytes() + marks.size_bytes(); }
};

}  // namespace tailtrace::pt
