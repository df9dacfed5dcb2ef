// FlatWriter: writes FlatBuffers, the form of Arrow's metadata: tables whose fields may be missing,
// and vectors. What refers to something comes before it.
//
// Threading: one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decoder/base/bytes.h"

namespace tailtrace {

// A field of a table: a number of 1, 2, 4 or 8 bytes, or a reference to what is put later.
struct FlatField {
  unsigned slot;  // which one of its schema
  unsigned size_bytes;
  std::uint64_t value = 0;
};
constexpr FlatField flat_reference(unsigned slot) { return {slot, 4, 0}; }

class FlatWriter {
 public:
  // Where a reference stands that is still open.
  using Reference = std::size_t;

  FlatWriter() { put(0, 4); }
  static constexpr Reference kRoot = 0;

  // `reference` leads to a table of these fields, the largest first. Returns where those of 4 bytes
  // and larger stand, in their order.
  std::vector<Reference> table(Reference reference, std::span<const FlatField> fields);

  // `reference` leads to a text.
  void text(Reference reference, std::string_view text);

  // `reference` leads to a vector of so many structures of 8-byte numbers, of which these are all.
  void numbers(Reference reference, std::size_t count, std::span<const std::uint64_t> numbers);

  // `reference` leads to a vector of references, which are returned.
  std::vector<Reference> references(Reference reference, std::size_t count);

  // A multiple of 8 bytes.
  Bytes finish() {
    align(8, 0);
    return std::move(bytes_);
  }

 private:
  void put(std::uint64_t value, std::size_t size_bytes) {
    for (; size_bytes != 0; --size_bytes, value >>= 8)
      bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void set(std::size_t at, std::uint64_t value, std::size_t size_bytes) {
    for (; size_bytes != 0; --size_bytes, value >>= 8)
      bytes_[at++] = static_cast<std::uint8_t>(value);
  }
  // What is put `behind` bytes further on is aligned.
  void align(std::size_t to, std::size_t behind) {
    while ((bytes_.size() + behind) % to != 0) bytes_.push_back(0);
  }
  void lead(Reference reference) { set(reference, bytes_.size() - reference, 4); }

  Bytes bytes_;
};

}  // namespace tailtrace
