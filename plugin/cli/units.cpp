#include "plugin/cli/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "decoder/record/ring.h"

namespace tailtrace {
namespace {

struct Unit {
  std::string_view name;
  unsigned shift;
};
constexpr std::array<Unit, 5> kUnits = {
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"bytes", 0}}};

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// How far a unit shifts: "MiB", "MB", "M" and "m" are one; no unit is bytes.
std::optional<unsigned> unit_shift(std::string_view word) {
  if (word.empty() || same_word(word, "b")) return 0;
  for (const Unit& unit : kUnits) {
    if (same_word(word, unit.name)) return unit.shift;
    if (unit.shift == 0) continue;
    if (same_word(word, unit.name.substr(0, 1))) return unit.shift;
    if (same_word(word, std::string{unit.name[0], 'B'})) return unit.shift;
  }
  return std::nullopt;
}

constexpr char kFix[] = "a number, with KiB, MiB, GiB or TiB behind it if it is a size";

struct Quantity {
  std::uint64_t number = 0;
  std::string_view unit;
};

Result<Quantity> parse_quantity(std::string_view text, std::string_view wanted) {
  Quantity quantity;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, quantity.number);
  std::string what = fmt::format("cannot use `{}` as {}", text, wanted);
  if (error == std::errc::result_out_of_range)
    return fail(ErrorCode::kUsage, what, "it is larger than 64 bits", kFix);
  if (error != std::errc())
    return fail(ErrorCode::kUsage, what,
                text.starts_with('-') ? "it is negative" : "it is not a number", kFix);
  while (rest != end && *rest == ' ') ++rest;
  quantity.unit = {rest, static_cast<std::size_t>(end - rest)};
  if (!unit_shift(quantity.unit))
    return fail(ErrorCode::kUsage, what, fmt::format("`{}` is no unit", quantity.unit), kFix);
  return quantity;
}

Result<std::uint64_t> size_of(const Quantity& quantity, std::string_view text) {
  unsigned shift = *unit_shift(quantity.unit);
  if (quantity.number > (~0ull >> shift))
    return fail(ErrorCode::kUsage, fmt::format("cannot use `{}` as a size", text),
                "it is larger than 64 bits", kFix);
  return quantity.number << shift;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  auto quantity = parse_quantity(text, "a size");
  if (!quantity) return fail(std::move(quantity.error()));
  return size_of(*quantity, text);
}

Result<std::uint64_t> parse_ring_records(std::string_view text) {
  auto quantity = parse_quantity(text, "a ring's capacity");
  if (!quantity) return fail(std::move(quantity.error()));
  if (quantity->unit.empty()) return check_ring_capacity(quantity->number);
  auto size = size_of(*quantity, text);
  if (!size) return fail(std::move(size.error()));
  auto records = check_ring_capacity(*size / sizeof(BranchRecord));
  if (!records)
    records.error().what += fmt::format(" ({} of {} bytes each)", text, sizeof(BranchRecord));
  return records;
}

std::string format_size(std::uint64_t size_bytes) {
  for (const Unit& unit : kUnits)
    if (size_bytes != 0 && size_bytes % (1ull << unit.shift) == 0)
      return fmt::format("{} {}", size_bytes >> unit.shift, unit.name);
  return "0 bytes";
}

}  // namespace tailtrace
