#include "decoder/symbols/perf_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace tailtrace {
namespace {

// Cuts a hexadecimal number and the blank behind it off the front.
std::optional<std::uint64_t> take_number(std::string_view& line) {
  const std::size_t blank = line.find(' ');
  if (blank == line.npos) return std::nullopt;
  std::string_view digits = line.substr(0, blank);
  line.remove_prefix(blank + 1);
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  return parse_hex(digits);
}

bool add_line(std::string_view line, GeneratedFunctions& functions) {
  auto begin = take_number(line), size_bytes = begin ? take_number(line) : std::nullopt;
  if (!size_bytes) return false;
  // Whoever has no size for a stub says 0: one byte has its name at least.
  return functions.add({*begin}, std::max<std::uint64_t>(*size_bytes, 1), line);
}

}  // namespace

Result<void> add_perf_map(std::string_view text, const std::string& name,
                          GeneratedFunctions& functions) {
  std::size_t lines = 0, bad = 0, first_bad = 0;
  // A last line without its end is still being written.
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    std::string_view line = text.substr(0, end);
    ++lines;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || add_line(line, functions)) continue;
    if (bad++ == 0) first_bad = lines;
  }
  if (bad == 0) return {};
  return fail(ErrorCode::kBadInput, fmt::format("cannot read {} line(s) of {}", bad, name),
              fmt::format("line {} is not ADDRESS SIZE NAME, or one function too many", first_bad),
              "", "the names of all others are known");
}

}  // namespace tailtrace
