// The kernel's side of a data ring, as simply as it can be said: every byte ever written is kept,
// and beside it the bytes that the ring would hold. Readers are held against it.
//
// Threading: one thread at a time.
#pragma once

#include <vector>

#include "decoder/perf/abi.h"

namespace tailtrace::perf {

class RingModel {
 public:
  RingModel(std::size_t size_bytes, bool backward) : ring_(size_bytes), backward_(backward) {}

  // One reservation: its parts lie upwards in memory whatever the ring's direction.
  void write(std::initializer_list<Bytes> parts) {
    Bytes joined;
    for (const Bytes& part : parts) joined.insert(joined.end(), part.begin(), part.end());
    if (backward_) head_ -= joined.size();
    for (std::size_t i = 0; i < joined.size(); ++i) ring_[(head_ + i) % ring_.size()] = joined[i];
    if (!backward_) head_ += joined.size();
    for (const Bytes& part : parts) records_.push_back(part);
  }
  void write(const Bytes& record) { write({record}); }

  ByteSpan ring() const { return ring_; }
  std::uint64_t head() const { return head_; }
  // All ever written, in the order of time.
  const std::vector<Bytes>& records() const { return records_; }

 private:
  Bytes ring_;
  bool backward_;
  std::uint64_t head_ = 0;
  std::vector<Bytes> records_;
};

// A record of `size_bytes` that tells its number in its first word, and its number again in its
// last byte, so that one put together wrongly is noticed.
inline Bytes numbered_record(std::uint32_t type, std::size_t size_bytes, std::uint64_t number) {
  Bytes record(size_bytes, static_cast<std::uint8_t>(number));
  RecordHeader header{type, 0, static_cast<std::uint16_t>(size_bytes)};
  std::memcpy(record.data(), &header, sizeof header);
  if (size_bytes >= 16) std::memcpy(record.data() + 8, &number, 8);
  return record;
}

}  // namespace tailtrace::perf
