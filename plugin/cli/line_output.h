// LineOutput: many short lines to a file, gathered and written in large pieces.
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
  ~LineOutput() { flush(); }

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
    std::fwrite(buffer_.data(), 1, buffer_.size(), out_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kFlush_bytes = 1 << 16;
  std::FILE* out_;
  fmt::memory_buffer buffer_;
};

}  // namespace tailtrace
