// ReturnStack: the processor's stack of return addresses for return compression: 64 entries, the
// oldest falls off (SDM, "RET compression").
//
// Threading: as a vector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tailtrace::pt {

class ReturnStack {
 public:
  static constexpr std::size_t kCapacity = 64;

  void push(std::uint64_t address) {
    entries_[top_++ % kCapacity] = address;
    if (size_ < kCapacity) ++size_;
  }
  bool pop(std::uint64_t& address) {
    if (size_ == 0) return false;
    address = entries_[--top_ % kCapacity];
    --size_;
    return true;
  }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }

 private:
  std::array<std::uint64_t, kCapacity> entries_{};
  std::size_t top_ = 0;
  std::size_t size_ = 0;
};

}  // namespace tailtrace::pt
