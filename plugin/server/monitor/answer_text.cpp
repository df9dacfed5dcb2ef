#include "plugin/server/monitor/answer_text.h"

#include <algorithm>

namespace tailtrace {

LineSink into(std::string& text) {
  return [&text](std::string_view line) {
    text.append(line).push_back('\n');
    return text.size() < kMaxText_bytes;
  };
}

Range cut(std::int64_t first, std::uint64_t count, std::uint64_t size, std::uint64_t most) {
  std::uint64_t begin = static_cast<std::uint64_t>(first);
  if (first < 0) {
    const std::uint64_t back = 0 - begin;
    const std::uint64_t missing = back > size ? back - size : 0;
    if (count <= missing) return {};
    count -= missing;
    begin = size + 1 - (back - missing);
  }
  if (begin > size || count == 0) return {};
  return {begin, begin + std::min({count, most, size - begin + 1}) - 1};
}

JsonNumbers numbers_like(std::int64_t first) {
  return first < 0 ? JsonNumbers::kFromNewest : JsonNumbers::kBoth;
}

}  // namespace tailtrace
