#include "plugin/server/qemu/memory_request.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

// It has room for 4096 characters, two for each byte.
constexpr std::uint64_t kMostAtOnce_bytes = 1024;

}  // namespace

std::vector<std::string> parts_of_memory_request(std::string_view request) {
  const std::size_t comma = std::min(request.find(','), request.size());
  const std::size_t colon = std::min(request.find(':'), request.size());
  const bool writes = request.starts_with('M');
  const bool is_one = (writes || request.starts_with('m')) && comma < colon;
  auto address = is_one ? parse_hex(request.substr(1, comma - 1)) : std::nullopt;
  auto size = is_one ? parse_hex(request.substr(comma + 1, colon - comma - 1)) : std::nullopt;
  std::string_view digits = writes ? request.substr(std::min(colon + 1, request.size())) : "";
  if (!address || !size || *size <= kMostAtOnce_bytes || (writes && digits.size() != 2 * *size))
    return {std::string(request)};
  std::vector<std::string> parts;
  for (std::uint64_t done = 0; done < *size; done += kMostAtOnce_bytes) {
    const std::uint64_t part = std::min(*size - done, kMostAtOnce_bytes);
    parts.push_back(fmt::format("{}{:x},{:x}", request[0], *address + done, part));
    if (writes) parts.back().append(":").append(digits.substr(2 * done, 2 * part));
  }
  return parts;
}

}  // namespace tailtrace
