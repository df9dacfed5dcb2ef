#include "plugin/lldb/positions.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <optional>

namespace tailtrace::lldb_plugin {
namespace {

std::optional<std::uint64_t> number_in(std::string_view digits) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

}  // namespace

std::string place_of(const Json& item) {
  std::string place = item.value("function", "");
  if (item.contains("offset") && item["offset"] != "0x0")
    place += "+" + item["offset"].get<std::string>();
  if (item.contains("file"))
    place +=
        fmt::format("  {}:{}", std::filesystem::path(item.value("file", "")).filename().string(),
                    item.value("line", 0));
  return place;
}

std::int64_t standing(Session& session) {
  if (!session.thread().IsValid()) return 0;
  const auto position = session.packet("qTailtraceWhere:" + session.thread_name());
  if (!position || !position->starts_with('-')) return 0;
  return -static_cast<std::int64_t>(number_in(position->substr(1)).value_or(0));
}

// Counting all that is recorded is left to those who ask for the oldest of it.
Result<std::int64_t> position_back(Session& session, const std::string& position) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const bool counts_back = position.starts_with('-');
  const auto number = number_in(std::string_view(position).substr(counts_back ? 1 : 0));
  const bool can_be = number && *number != 0 && *number < kMost;
  if (can_be && counts_back) {
    auto lines = session.monitor_json(fmt::format("items -{} 1", *number));
    if (!lines) return fail(std::move(lines.error()));
    if (lines->size() > 1) return -static_cast<std::int64_t>(*number);
  }
  auto head = session.monitor_json("items 1 0");
  if (!head) return fail(std::move(head.error()));
  const std::uint64_t size = head->front().value("size", std::uint64_t{0});
  if (can_be && !counts_back && *number <= size)
    return static_cast<std::int64_t>(*number - size) - 1;
  if (size == 0)
    return fail(ErrorCode::kNegative, fmt::format("there is no position {}", position),
                "no instruction was recorded yet", "continue, or step");
  return fail(ErrorCode::kUsage, fmt::format("there is no position {}", position),
              fmt::format("positions are 1 to {}, or -1, the newest, to -{}", size, size));
}

}  // namespace tailtrace::lldb_plugin
