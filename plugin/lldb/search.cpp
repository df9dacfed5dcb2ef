#include "plugin/lldb/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

namespace tailtrace::lldb_plugin {
namespace {

constexpr std::size_t kMaxAddresses = 200;

std::optional<std::uint64_t> number_in(std::string_view digits, int base = 10) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

void add_functions(lldb::SBTarget& target, const std::string& name,
                   std::vector<lldb::addr_t>& found) {
  lldb::SBSymbolContextList functions = target.FindFunctions(name.c_str());
  for (std::uint32_t i = 0; i < functions.GetSize(); ++i) {
    lldb::SBSymbolContext one = functions.GetContextAtIndex(i);
    lldb::SBAddress start = one.GetFunction().IsValid() ? one.GetFunction().GetStartAddress()
                                                        : one.GetSymbol().GetStartAddress();
    found.push_back(start.GetLoadAddress(target));
  }
}

void add_lines(lldb::SBTarget& target, const std::string& file, std::uint64_t line,
               std::vector<lldb::addr_t>& found) {
  lldb::SBFileSpec spec(file.c_str(), false);
  lldb::SBSymbolContextList units = target.FindCompileUnits(spec);
  for (std::uint32_t i = 0; i < units.GetSize(); ++i) {
    lldb::SBCompileUnit unit = units.GetContextAtIndex(i).GetCompileUnit();
    bool continues = false;  // rows of one line that follow each other are one place
    for (std::uint32_t row = 0; row < unit.GetNumLineEntries(); ++row) {
      lldb::SBLineEntry entry = unit.GetLineEntryAtIndex(row);
      bool wanted = entry.GetLine() == line;
      if (wanted && !continues) found.push_back(entry.GetStartAddress().GetLoadAddress(target));
      continues = wanted;
    }
  }
}

Result<std::vector<lldb::addr_t>> addresses_of(Session& session, const std::string& location) {
  lldb::SBTarget target = session.target();
  std::vector<lldb::addr_t> found;
  std::size_t colon = location.rfind(':');
  auto line = colon == std::string::npos ? std::nullopt
                                         : number_in(std::string_view(location).substr(colon + 1));
  if (location.starts_with("0x")) {
    if (auto address = number_in(std::string_view(location).substr(2), 16))
      found.push_back(*address);
  } else if (line) {
    add_lines(target, location.substr(0, colon), *line, found);
  } else {
    add_functions(target, location, found);
  }
  std::erase(found, LLDB_INVALID_ADDRESS);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > kMaxAddresses) found.resize(kMaxAddresses);
  if (!found.empty()) return found;
  return fail(ErrorCode::kUsage, fmt::format("cannot find {}", location),
              "it is no function, FILE:LINE or 0xADDRESS of the program");
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
  return fail(ErrorCode::kUsage, fmt::format("there is no position {}", position),
              fmt::format("positions are 1 to {}, or -1, the newest, to -{}", size, size));
}

Result<void> show_hits(Session& session, const std::string& location, std::uint64_t limit) {
  auto addresses = addresses_of(session, location);
  if (!addresses) return fail(std::move(addresses.error()));
  std::string words = fmt::format("find {}", limit);
  for (lldb::addr_t address : *addresses) words += fmt::format(" {:#x}", address);
  auto lines = session.monitor_json(words);
  if (!lines) return fail(std::move(lines.error()));
  if (lines->size() == 1)
    return fail(ErrorCode::kNegative, fmt::format("{} was not executed", location),
                "its first instruction is nowhere in the history of this thread");
  std::string text;
  for (auto line = lines->rbegin(); line != lines->rend() - 1; ++line)
    text += fmt::format("  [{}]  {}  {}\n", line->value("position", 0), line->value("address", ""),
                        place_of(*line));
  session.print(text);
  return {};
}

}  // namespace tailtrace::lldb_plugin
