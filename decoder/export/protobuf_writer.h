// Messages in the binary form of Protocol Buffers ("Encoding" in their documentation): fields with
// their numbers, one behind the other. There is no schema here: who writes knows the numbers.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tailtrace {

class ProtobufWriter {
 public:
  // An integer of any of the kinds that are not fixed in size, an enum or a bool.
  void number(unsigned field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
  }
  // A text, bytes, or a message within the message.
  void text(unsigned field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(unsigned field, const ProtobufWriter& inner) { text(field, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace tailtrace
