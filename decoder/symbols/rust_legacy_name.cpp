#include <algorithm>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/symbols/rust_name.h"

namespace tailtrace {
namespace {

// What a code between two dollars stands for: "LT", or "u7b" for any character of ASCII that is not
// a control character.
std::optional<char> legacy_character(std::string_view code) {
  using Sign = std::pair<std::string_view, char>;
  constexpr Sign kSigns[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                             {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
  for (const auto& [name, character] : kSigns)
    if (name == code) return character;
  if (code.size() != 3 || code[0] != 'u') return std::nullopt;
  const auto value = parse_hex(code.substr(1));
  if (!value || *value < ' ' || *value > '~') return std::nullopt;
  return static_cast<char>(*value);
}

// One part of the path.
std::string legacy_part(std::string_view part) {
  std::string out;
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      out += "::";
      part.remove_prefix(2);
      continue;
    }
    if (part.front() == '$') {
      const std::string_view code = part.substr(1, part.find('$', 1) - 1);
      if (const auto character = legacy_character(code)) {
        out += *character;
        part.remove_prefix(code.size() + 2);
        continue;
      }
    }
    out += part.front();
    part.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::optional<std::string> rust_legacy_name(std::string_view demangled) {
  constexpr std::size_t kHash_bytes = 16;
  constexpr std::string_view kHash = "::h";
  const std::size_t end = kHash_bytes + kHash.size();
  if (demangled.size() <= end) return std::nullopt;
  std::string_view path = demangled.substr(0, demangled.size() - end);
  const std::string_view hash = demangled.substr(path.size());
  const bool is_hash = hash.starts_with(kHash) && parse_hex(hash.substr(kHash.size()));
  if (!is_hash) return std::nullopt;
  std::string out;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t part_end = std::min(path.find("::", begin), path.size());
    if (begin != 0) out += "::";
    out += legacy_part(path.substr(begin, part_end - begin));
    begin = part_end + 2;
  }
  return out;
}

}  // namespace tailtrace
