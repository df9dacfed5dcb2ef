// JitFile: a jitdump put together by hand, record by record.
//
// Threading: one thread at a time.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/bytes.h"

namespace tailtrace {

class JitFile {
 public:
  explicit JitFile(std::uint64_t flags = 0) {
    for (std::uint32_t word : {0x4a695444u, 1u, 40u, 62u, 0u, 4211u}) put(word);
    put(std::uint64_t{1});
    put(flags);
  }

  void record(std::uint32_t kind, std::uint64_t time, const Bytes& payload) {
    put(kind);
    put(static_cast<std::uint32_t>(16 + payload.size()));
    put(time);
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
  }

  // `said_bytes`: what the record says that its code is long.
  void load(std::uint64_t time, std::uint64_t address, std::string_view name, const Bytes& code,
            std::uint64_t index, std::optional<std::uint64_t> said_bytes = {}) {
    JitFile payload{Empty()};
    payload.put(std::uint32_t{4211});
    payload.put(std::uint32_t{4212});
    for (std::uint64_t field : {address, address, said_bytes.value_or(code.size()), index})
      payload.put(field);
    payload.bytes_.insert(payload.bytes_.end(), name.begin(), name.end());
    payload.bytes_.push_back(0);
    payload.bytes_.insert(payload.bytes_.end(), code.begin(), code.end());
    record(0, time, payload.bytes_);
  }

  void move(std::uint64_t time, std::uint64_t from, std::uint64_t to, std::uint64_t size_bytes,
            std::uint64_t index) {
    JitFile payload{Empty()};
    payload.put(std::uint32_t{4211});
    payload.put(std::uint32_t{4212});
    for (std::uint64_t field : {to, from, to, size_bytes, index}) payload.put(field);
    record(1, time, payload.bytes_);
  }

  const Bytes& bytes() const { return bytes_; }

  void write(const std::string& path) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()),
               static_cast<std::streamsize>(bytes_.size()));
  }

 private:
  struct Empty {};
  explicit JitFile(Empty) {}

  template <class Number>
  void put(Number number) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(&number);
    bytes_.insert(bytes_.end(), first, first + sizeof number);
  }

  Bytes bytes_;
};

}  // namespace tailtrace
