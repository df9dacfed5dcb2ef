// CompactPath: what the fast path (fast_flow.h) writes, a word for each TNT byte or TIP, and beside
// the words the times that timing packets told on the way.
//
// Threading: one thread at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "decoder/pt/fast/large_array.h"

namespace tailtrace::pt {

// The time from a word on, as timing packets before the word's packet tell it.
struct TimeMark {
  std::uint32_t word : 31;   // since its stretch began
  std::uint32_t exact : 1;   // of that packet alone: a CYC is among them
  std::int32_t since_start;  // ticks of the clock, since that of the stretch's start
};
static_assert(sizeof(TimeMark) == 8);

// Items one behind the other, of this path and of those before it, in memory that all of them
// share: what was written stays where it is, and memory that nobody has any more is used again.
template <class T>
class PathArray {
 public:
  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * sizeof(T); }
  std::span<const T> span() const { return {items_, size_}; }
  void clear() { size_ = 0; }

  // Room for `count` items behind the end, which are counted by grow().
  T* room(std::size_t count) {
    if (size_ + count > capacity_) make_room(count);
    return items_ + size_;
  }
  void grow(std::size_t count) { size_ += count; }

  // What there is, to be read only. This one is empty then and goes on behind it.
  PathArray take() {
    PathArray taken = *this;
    taken.capacity_ = size_;
    items_ += size_;
    capacity_ -= size_;
    size_ = 0;
    return taken;
  }
  // Begins anew if nobody has any of what was taken. REQUIRES: it is empty.
  void reuse() {
    if (memory_.use_count() != 1) return;
    std::atomic_thread_fence(std::memory_order_acquire);
    items_ = memory_->data();
    capacity_ = memory_->size();
  }

 private:
  static constexpr std::size_t kFirst_bytes = 1u << 16, kFurther_bytes = 1u << 24;

  // The first takes no more than is needed; when that was not enough there is much.
  void make_room(std::size_t count) {
    const bool is_first = memory_ == nullptr;
    const std::size_t least = (is_first ? kFirst_bytes : kFurther_bytes) / sizeof(T);
    const std::size_t capacity = std::max(least, 2 * (size_ + count));
    auto memory =
        std::make_shared<LargeArray<T>>(capacity, is_first ? PageSize::kSmall : PageSize::kLarge);
    std::copy_n(items_, size_, memory->data());
    memory_ = std::move(memory);
    items_ = memory_->data();
    capacity_ = capacity;
  }

  std::shared_ptr<LargeArray<T>> memory_;
  T* items_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;  // from `items_` on
};

struct CompactPath {
  PathArray<std::uint32_t> words;
  PathArray<TimeMark> marks;  // a stretch's in the order of their words

  void clear() {
    words.clear();
    marks.clear();
  }
  CompactPath take() { return {words.take(), marks.take()}; }
  void reuse() {
    words.reuse();
    marks.reuse();
  }
  std::size_t size_bytes() const { return words.size_bytes() + marks.size_bytes(); }
};

}  // namespace tailtrace::pt
