#include "plugin/engines/qemu/process_state.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "decoder/base/file.h"

namespace tailtrace {

std::uint64_t process_start_time(std::int32_t pid) {
  constexpr int kState = 3, kStartTime = 22;
  Result<Bytes> bytes = read_file(fmt::format("/proc/{}/stat", pid), 1 << 16);
  if (!bytes) return 0;
  std::string_view text = as_text(*bytes);
  // The name, in parentheses, may itself hold spaces and parentheses.
  std::size_t at = text.rfind(')');
  for (int field = 2; field < kStartTime; ++field) {
    if (at == std::string_view::npos) return 0;
    if (field == kState && (text[at + 1] == 'Z' || text[at + 1] == 'X')) return 0;
    at = text.find(' ', at + 1);
  }
  std::uint64_t value = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  return value;
}

}  // namespace tailtrace
