// LineOutput: many short lines to a file, gathered and written in large pieces, the last one by
// flush(). As fmt::print() it throws when the file cannot be written to.
//
// Threading: one thread at a time.
#pragma once

#include <fmt/compile.h>

#include <cstdio>
#include <string_view>

namespace tailtrace {

class LineOutput {
 public:
  explicit LineOutput(std::FILE* out) : out_(out) {}
  LineOutput(const LineOutput&) = delete;

  void put(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() > kFlush_bytes) flush();
  }
  // `format` is an FMT_COMPILE().
  template <class Format, class... Args>
  void print(const Format& format, const Args&... args) {
    fmt::format_to(fmt::appender(buffer_), format, args...);
    if (buffer_.size() > kFlush_bytes) flush();
  }
  void flush() {
    const std::string_view text(buffer_.data(), buffer_.size());
    buffer_.clear();
    fmt::print(out_, "{}", text);
  }

 private:
  static constexpr std::size_t kFlush_bytes = 1 << 16;
  std::FILE* out_;
  fmt::memory_buffer buffer_;
};

}  // namespace tailtrace
