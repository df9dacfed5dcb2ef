// Bytes of a buffer, little-endian loads and stores, and hexadecimal as the remote protocol
// writes it.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tailtrace {

using ByteSpan = std::span<const std::uint8_t>;
using Bytes = std::vector<std::uint8_t>;

// REQUIRES: `bytes` holds sizeof(T) bytes from `offset` on. T is little-endian as is the host.
template <class T>
T load(ByteSpan bytes, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Lower-case hexadecimal, two digits a byte.
std::string to_hex(ByteSpan bytes);

// The bytes of an even number of hexadecimal digits of either case; nothing when it is not that.
std::optional<Bytes> from_hex(std::string_view digits);

// A number in hexadecimal without a prefix, all of `digits`, at most 64 bits; nothing otherwise.
std::optional<std::uint64_t> parse_hex(std::string_view digits);

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace tailtrace
