// Large arrays: zeroed memory, of which only what is touched takes any.
//
// Threading: as a vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace tailtrace::pt {

// Large pages, where the system has them, are for what is looked at over and over, and for much
// that is written one behind the other. They are cleared in one go, however little is touched; so
// what may stay small begins with small ones.
enum class PageSize : std::uint8_t { kSmall, kLarge, kSmallFirst };

class MappedMemory {
 public:
  MappedMemory(std::size_t size_bytes, PageSize pages);
  ~MappedMemory();
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(other.size_bytes_),
        is_mapped_(other.is_mapped_) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(is_mapped_, other.is_mapped_);
    return *this;
  }
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t size_bytes_;
  bool is_mapped_;
};

template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit LargeArray(std::size_t count, PageSize pages = PageSize::kLarge)
      : memory_(count * sizeof(T), pages), count_(count) {}

  T* data() { return static_cast<T*>(memory_.data()); }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }

 private:
  MappedMemory memory_;
  std::size_t count_;
};

// A vector that has room for all it may hold from the begin on: it never moves.
template <class T>
class BoundedArray {
 public:
  explicit BoundedArray(std::size_t capacity) : items_(capacity, PageSize::kSmallFirst) {}

  std::size_t size() const { return size_; }
  // REQUIRES: fewer than its capacity.
  void push_back(const T& item) { new (&items_[size_++]) T(item); }
  // Items as they were, or zero. REQUIRES: no more than its capacity.
  void grow(std::size_t count) { size_ += count; }
  void clear() { size_ = 0; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  T& back() { return items_[size_ - 1]; }
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }

 private:
  LargeArray<T> items_;
  std::size_t size_ = 0;
};

}  // namespace tailtrace::pt
