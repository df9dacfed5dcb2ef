#include "decoder/base/process_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/base/text.h"

namespace tailtrace {

Result<std::string> process_status(std::int32_t pid) {
  constexpr std::size_t kMaxStatus_bytes = 1 << 16;
  return read_file(fmt::format("/proc/{}/status", pid), kMaxStatus_bytes)
      .map([](const Bytes& text) { return std::string(as_text(text)); });
}

std::string_view status_value(std::string_view status, std::string_view name) {
  while (!status.empty()) {
    const std::string_view line = status.substr(0, status.find('\n'));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return trim(line.substr(name.size() + 1));
  }
  return {};
}

}  // namespace tailtrace
