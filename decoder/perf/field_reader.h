// Reads one field after the other out of a record, and remembers whether any was missing: the
// caller asks once, at the end. A missing field reads as zero.
//
// Threading: one thread at a time.
#pragma once

#include <string>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace::perf {

class FieldReader {
 public:
  explicit FieldReader(ByteSpan bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::int32_t i32() { return number<std::int32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  ThreadId thread() {
    ThreadId id;
    id.pid = i32();
    id.tid = i32();
    return id;
  }

  // The next bytes; none when there are fewer.
  ByteSpan take(std::uint64_t size_bytes) {
    if (size_bytes > bytes_.size()) {
      refuse();
      return {};
    }
    ByteSpan taken = bytes_.first(size_bytes);
    bytes_ = bytes_.subspan(size_bytes);
    return taken;
  }
  void skip(std::uint64_t size_bytes) { take(size_bytes); }

  // All that is left, up to the first zero byte.
  std::string text() {
    std::string_view rest = as_text(take(bytes_.size()));
    return std::string(rest.substr(0, rest.find('\0')));
  }

  void refuse() { ok_ = false; }
  bool ok() const { return ok_; }

 private:
  template <class T>
  T number() {
    ByteSpan taken = take(sizeof(T));
    return taken.empty() ? T{} : load<T>(taken);
  }

  ByteSpan bytes_;
  bool ok_ = true;
};

}  // namespace tailtrace::perf
