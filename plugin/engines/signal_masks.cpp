#include "plugin/engines/signal_masks.h"

#include <fmt/format.h>

#include <string_view>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxStatus_bytes = 1 << 16;

// A line of the status, "SigCgt:\t0000000180004a43".
std::uint64_t mask_in(std::string_view status, std::string_view name) {
  constexpr std::size_t kDigits = 16;
  const std::size_t at = status.find(name);
  if (at == status.npos) return 0;
  return parse_hex(status.substr(at + name.size(), kDigits)).value_or(0);
}

}  // namespace

std::optional<SignalMasks> signal_masks(std::int32_t pid) {
  auto status = read_file(fmt::format("/proc/{}/status", pid), kMaxStatus_bytes);
  if (!status) return std::nullopt;
  return SignalMasks{mask_in(as_text(*status), "SigCgt:\t"),
                     mask_in(as_text(*status), "SigIgn:\t")};
}

}  // namespace tailtrace
