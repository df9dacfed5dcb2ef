#include "plugin/engines/perf/pmu.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "decoder/base/file.h"

namespace tailtrace::perf {
namespace {

namespace fs = std::filesystem;

std::string read_line(const fs::path& path) {
  auto bytes = read_file(path.string(), 4096);
  if (!bytes) return {};
  std::string_view text = as_text(*bytes);
  return std::string(text.substr(0, text.find('\n')));
}

// Reads a decimal number and moves behind it.
std::optional<unsigned> take_number(std::string_view& text) {
  unsigned value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

template <class Use>
void each_file(const fs::path& folder, Use use) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    use(entry->path().filename().string(), read_line(entry->path()));
}

__u64& word_of(perf_event_attr& attr, int word) {
  return word == 0 ? attr.config : word == 1 ? attr.config1 : attr.config2;
}

}  // namespace

std::optional<PmuField> parse_field(const std::string& text) {
  std::string_view rest = text;
  PmuField field;
  if (!take_word(rest, "config")) return std::nullopt;
  if (!rest.empty() && rest[0] != ':') {
    auto word = take_number(rest);
    if (!word || *word > 2) return std::nullopt;
    field.word = static_cast<int>(*word);
  }
  if (!take_word(rest, ":")) return std::nullopt;
  auto first = take_number(rest);
  if (!first) return std::nullopt;
  field.first_bit = field.last_bit = *first;
  if (take_word(rest, "-")) {
    auto last = take_number(rest);
    if (!last) return std::nullopt;
    field.last_bit = *last;
  }
  if (!rest.empty() || field.last_bit > 63 || field.first_bit > field.last_bit) return std::nullopt;
  return field;
}

std::optional<std::uint64_t> PmuDescription::cap(const std::string& cap_name) const {
  auto found = caps.find(cap_name);
  if (found == caps.end()) return std::nullopt;
  std::string_view digits = found->second;
  take_word(digits, "0x");
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> PmuDescription::number(const std::string& attribute) const {
  auto found = attributes.find(attribute);
  if (found == attributes.end()) return std::nullopt;
  std::string_view digits = found->second;
  return take_number(digits);
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> PmuDescription::ratio(
    const std::string& attribute) const {
  auto found = attributes.find(attribute);
  if (found == attributes.end()) return std::nullopt;
  std::string_view text = found->second;
  auto first = take_number(text);
  if (!first || !take_word(text, ":")) return std::nullopt;
  auto second = take_number(text);
  if (!second || *first == 0 || *second == 0) return std::nullopt;
  return std::pair{*first, *second};
}

Result<void> PmuDescription::set(perf_event_attr& attr, const std::string& field,
                                 std::uint64_t value) const {
  auto found = fields.find(field);
  if (found == fields.end())
    return fail(
        ErrorCode::kNoEngine, fmt::format("cannot set {} of {}", field, name),
        fmt::format("there is no format/{}: this processor or kernel does not have it", field));
  unsigned width = found->second.last_bit - found->second.first_bit + 1;
  std::uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
  if (value > mask)
    return fail(ErrorCode::kUsage, fmt::format("cannot set {} of {} to {}", field, name, value),
                fmt::format("it has {} bits: {} at most", width, mask));
  __u64& word = word_of(attr, found->second.word);
  word = (word & ~(mask << found->second.first_bit)) | value << found->second.first_bit;
  return {};
}

Result<PmuDescription> read_pmu(const std::string& root, const std::string& name) {
  fs::path folder = fs::path(root + "/sys/bus/event_source/devices") / name;
  std::string type = read_line(folder / "type");
  std::string_view digits = type;
  auto number = take_number(digits);
  if (!number || !digits.empty())
    return fail(ErrorCode::kNoEngine, fmt::format("this machine has no PMU named {}", name),
                fmt::format("{} is not there", (folder / "type").string()));
  PmuDescription pmu;
  pmu.name = name;
  pmu.type = *number;
  each_file(folder / "format", [&](const std::string& field, const std::string& text) {
    if (auto parsed = parse_field(text)) pmu.fields[field] = *parsed;
  });
  each_file(folder, [&](const std::string& attribute, const std::string& text) {
    if (!text.empty()) pmu.attributes[attribute] = text;
  });
  each_file(folder / "caps",
            [&](const std::string& cap, const std::string& text) { pmu.caps[cap] = text; });
  return pmu;
}

}  // namespace tailtrace::perf
