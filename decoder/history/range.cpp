#include "decoder/history/range.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "decoder/base/text.h"

namespace tailtrace {
namespace {

// Large enough to be beyond any history, small enough that sums of a few do not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;
// Histories whose numbers begin at the newest have as many.
constexpr std::int64_t kMostItems = std::int64_t{1} << 62;

// A number with an optional sign, all of the text; at most kFar.
struct Number {
  std::int64_t value = 0;
  char sign = 0;  // '+', '-' or 0
};

std::optional<Number> parse_signed(std::string_view text) {
  Number number;
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) {
    number.sign = text.front();
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  bool far = error != std::errc() || value > static_cast<std::uint64_t>(kFar);
  number.value = far ? kFar : static_cast<std::int64_t>(value);
  if (number.value == 0) return std::nullopt;
  return number;
}

tl::unexpected<Error> unreadable(std::string_view text) {
  return fail(ErrorCode::kUsage, fmt::format("cannot read the range `{}`", text),
              "it is not N, N,M, N,+K, N,-K, - or all", "write for example 1,20 or -50,-1");
}

tl::unexpected<Error> nothing_there(std::string_view text, std::uint64_t size) {
  std::string why = size == 0 ? "the history is empty" : fmt::format("there are 1 to {}", size);
  const std::string what = text.empty() ? std::string("there is nothing to show")
                                        : fmt::format("there is nothing in the range `{}`", text);
  return fail(ErrorCode::kNegative, what, why);
}

Result<Range> page_without_numbers(std::string_view text, const RangeContext& c) {
  bool back = text == "-";
  if (c.size == 0) return nothing_there(text, c.size);
  if (!c.previous) return Range{c.size - std::min(c.size, c.page) + 1, c.size};
  if (back && c.previous->first <= 1)
    return fail(ErrorCode::kNegative, "there is nothing before this", "the history begins here");
  if (!back && c.previous->last >= c.size)
    return fail(ErrorCode::kNegative, "there is nothing after this", "the history ends here");
  if (!back) {
    std::uint64_t first = c.previous->last + 1;
    return Range{first, first + std::min(c.size - first, c.page - 1)};
  }
  std::uint64_t last = std::min(c.previous->first - 1, c.size);
  return Range{last - std::min(last, c.page) + 1, last};
}

}  // namespace

Result<Range> parse_range(std::string_view text, const RangeContext& context) {
  RangeContext c = context;
  c.page = std::clamp<std::uint64_t>(c.page, 1, kFar);
  text = trim(text);
  if (text.empty() || text == "-") return page_without_numbers(text, c);
  if (text == "all" && c.size != 0) return Range{1, c.size};
  if (text == "all") return nothing_there(text, c.size);
  const auto size = static_cast<std::int64_t>(std::min<std::uint64_t>(c.size, kMostItems));
  std::size_t comma = text.find(',');
  std::optional<Number> begin = parse_signed(trim(text.substr(0, comma)));
  if (!begin || begin->sign == '+') return unreadable(text);
  const bool from_newest = begin->sign == '-';
  std::int64_t first = from_newest ? size + 1 - begin->value : begin->value;
  std::int64_t last = first + static_cast<std::int64_t>(c.page) - 1;
  if (comma != std::string_view::npos) {
    std::optional<Number> end = parse_signed(trim(text.substr(comma + 1)));
    if (!end) return unreadable(text);
    const bool are_alike = (end->sign == '-') == from_newest && end->sign != '+';
    if (are_alike && (from_newest ? end->value > begin->value : end->value < begin->value))
      return fail(ErrorCode::kNegative, fmt::format("there is nothing in the range `{}`", text),
                  "it ends before it begins");
    if (end->sign == '+') {
      last = first + end->value - 1;
    } else if (end->sign == '-' && !from_newest) {
      last = first;
      first -= end->value - 1;
    } else {
      last = end->sign == '-' ? size + 1 - end->value : end->value;
    }
  }
  first = std::max<std::int64_t>(first, 1);
  last = std::min(last, size);
  if (last < first) return nothing_there(text, c.size);
  return Range{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last)};
}

}  // namespace tailtrace
