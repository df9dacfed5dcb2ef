// Strong types for integers that are easily swapped.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tailtrace {

// A virtual address of the traced program.
struct Address {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(Address, Address) = default;
  friend constexpr Address operator+(Address a, std::uint64_t n) { return {a.value + n}; }
  friend constexpr Address operator-(Address a, std::uint64_t n) { return {a.value - n}; }
  friend constexpr std::uint64_t operator-(Address a, Address b) { return a.value - b.value; }
  constexpr bool is_null() const { return value == 0; }
  // The kernel's half of memory has the top bit.
  constexpr bool is_kernel() const { return value >> 63 != 0; }
};

// The smallest page of x86-64: what memory is mapped and protected by.
constexpr std::uint64_t kPage_bytes = 4096;

// A thread as the kernel names it; `pid` is its thread group.
struct ThreadId {
  std::int32_t pid = 0;
  std::int32_t tid = 0;

  friend constexpr auto operator<=>(ThreadId, ThreadId) = default;
};

// A record of a thread: 0 is the first one ever written, whether or not it is still held.
struct Position {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(Position, Position) = default;
};

// A version of the code image: 0 holds from the start, each later change of code adds one.
struct Epoch {
  std::uint32_t value = 0;

  friend constexpr auto operator<=>(Epoch, Epoch) = default;
};

}  // namespace tailtrace

template <>
struct std::hash<tailtrace::Address> {
  std::size_t operator()(tailtrace::Address a) const noexcept {
    // Code addresses differ in their low bits only; spread them over the word.
    std::uint64_t x = a.value * 0x9e3779b97f4a7c15ull;
    return static_cast<std::size_t>(x ^ (x >> 32));
  }
};
template <>
struct std::hash<tailtrace::ThreadId> {
  std::size_t operator()(tailtrace::ThreadId t) const noexcept {
    return std::hash<std::uint64_t>()((static_cast<std::uint64_t>(t.pid) << 32) ^
                                      static_cast<std::uint32_t>(t.tid));
  }
};
