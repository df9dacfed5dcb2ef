// PathWords: the words of a compact path (row.h), as a vector that does not clear what it will be
// filled with.
//
// Threading: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tailtrace::pt {

class PathWords {
 public:
  std::size_t size() const { return size_; }
  const std::uint32_t* data() const { return words_.get(); }
  std::span<const std::uint32_t> span() const { return {words_.get(), size_}; }
  void clear() { size_ = 0; }

  // Room for `count` words behind the end, which are counted by grow().
  std::uint32_t* room(std::size_t count) {
    if (size_ + count > capacity_) enlarge(size_ + count);
    return words_.get() + size_;
  }
  void grow(std::size_t count) { size_ += count; }
  // As large as its content.
  PathWords copy() const;

 private:
  void enlarge(std::size_t least) { reallocate(std::max(least, capacity_ * 2)); }
  void reallocate(std::size_t capacity);

  std::unique_ptr<std::uint32_t[]> words_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace tailtrace::pt
