#include "plugin/lldb/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "plugin/lldb/search.h"

namespace tailtrace::lldb_plugin {
namespace {

// Instructions that one question to the server asks for, and all that are looked at.
constexpr std::uint64_t kPiece = 2000, kMaxSearched = 100'000;
constexpr std::size_t kMinRounds = 3, kMaxLoopVisits = 32;

// Consecutive instructions of a line, and the numbers of the first and the last.
struct Visit {
  Json item;
  std::uint64_t first = 0, last = 0;
};

// One visit, or the rounds of a loop: visits[newest] and older ones.
struct SourceRow {
  std::size_t newest = 0, visits = 1, rounds = 1;
};

// What was shown last to whom: where it began, in a history of that size.
struct Shown {
  std::uint64_t size = 0, first = 0, count = kSourcePage;
};
std::map<lldb::user_id_t, Shown>& shown() {
  static std::map<lldb::user_id_t, Shown> known;
  return known;
}

bool same_place(const Json& a, const Json& b) {
  return std::ranges::all_of(
      std::initializer_list<const char*>{"file", "line", "function", "gap"},
      [&](const char* key) { return a.value(key, Json()) == b.value(key, Json()); });
}

// How often the visits from `at` on repeat with this period.
std::size_t rounds_at(const std::vector<Visit>& visits, std::size_t at, std::size_t period) {
  std::size_t equal = 0;
  while (at + equal + period < visits.size() &&
         same_place(visits[at + equal].item, visits[at + equal + period].item))
    ++equal;
  return equal / period + 1;
}

// Visits are newest first, and so are the rows.
std::vector<SourceRow> folded(const std::vector<Visit>& visits) {
  std::vector<SourceRow> rows;
  for (std::size_t at = 0; at < visits.size(); at += rows.back().visits * rows.back().rounds) {
    SourceRow row{at, 1, 1};
    for (std::size_t period = 1; period <= kMaxLoopVisits && row.rounds == 1; ++period)
      if (std::size_t rounds = rounds_at(visits, at, period); rounds >= kMinRounds)
        row = {at, period, rounds};
    rows.push_back(row);
  }
  return rows;
}

// Adds what the piece of the history that ends with `last` has. Errors: as the server has them.
Result<void> add_visits(Session& session, std::uint64_t first, std::uint64_t last,
                        std::vector<Visit>& visits) {
  auto lines = session.monitor_json(fmt::format("items {} {}", first, last - first + 1));
  if (!lines) return fail(std::move(lines.error()));
  std::uint64_t number = last;
  for (auto line = lines->rbegin(); line != lines->rend() - 1; ++line, --number) {
    if (visits.empty() || !same_place(visits.back().item, *line))
      visits.push_back({*line, number, number});
    visits.back().item = *line;
    visits.back().first = number;
  }
  return {};
}

std::string text_of_line(Session& session, const Json& item) {
  std::uint64_t address = std::strtoull(item.value("address", "").c_str(), nullptr, 16);
  lldb::SBLineEntry line = session.target().ResolveLoadAddress(address).GetLineEntry();
  char path[4096] = {};
  if (!line.IsValid() || line.GetFileSpec().GetPath(path, sizeof path) == 0) return {};
  std::ifstream file(path);
  std::string text;
  for (std::uint32_t n = 0; n < line.GetLine() && std::getline(file, text);) ++n;
  return file ? text : std::string();
}

std::string loop_text(const std::vector<Visit>& visits, const SourceRow& row) {
  const Json& newest = visits[row.newest].item;
  int low = newest.value("line", 0), high = low;
  for (std::size_t i = 0; i < row.visits; ++i) {
    const Json& item = visits[row.newest + i].item;
    if (item.value("file", "") != newest.value("file", "")) continue;
    low = std::min(low, item.value("line", 0));
    high = std::max(high, item.value("line", 0));
  }
  std::string lines = low == high ? fmt::to_string(low) : fmt::format("{}-{}", low, high);
  return fmt::format("x{} loop {}:{}", row.rounds,
                     std::filesystem::path(newest.value("file", "??")).filename().string(), lines);
}

std::string text_of(Session& session, const std::vector<Visit>& visits, const SourceRow& row,
                    std::uint64_t size) {
  const Visit& oldest = visits[row.newest + row.visits * row.rounds - 1];
  const Visit& newest = visits[row.newest];
  std::string range = fmt::format("  [-{},-{}]  ", size + 1 - oldest.first, size + 1 - newest.last);
  if (row.rounds > 1) return range + loop_text(visits, row) + "\n";
  if (newest.item.contains("gap"))
    return range + fmt::format("-- gap: {} --\n", newest.item.value("text", ""));
  std::string line = text_of_line(session, newest.item);
  return range + place_of(newest.item) + "\n" + (line.empty() ? "" : "      " + line + "\n");
}

Result<std::uint64_t> size_of_history(Session& session) {
  auto head = session.monitor_json("items 1 0");
  if (!head) return fail(std::move(head.error()));
  return head->front().value("size", std::uint64_t{0});
}

// The rows that end with the item `last`.
Result<void> show_up_to(Session& session, std::uint64_t last, std::uint64_t size,
                        std::uint64_t count) {
  std::vector<Visit> visits;
  std::vector<SourceRow> rows;
  const std::uint64_t end = last - std::min(last, kMaxSearched);
  for (std::uint64_t at = last; rows.size() <= count && at > end;) {
    std::uint64_t first = at - std::min(at - end, kPiece) + 1;
    if (auto added = add_visits(session, first, at, visits); !added) return added;
    at = first - 1;
    rows = folded(visits);
  }
  rows.resize(std::min<std::size_t>(rows.size(), count));
  std::string text;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row)
    text += text_of(session, visits, *row, size);
  std::uint64_t begin = 1;
  if (!rows.empty())
    begin = visits[rows.back().newest + rows.back().visits * rows.back().rounds - 1].first;
  shown()[session.debugger().GetID()] = {size, begin, count};
  session.print(!text.empty() ? text
                : size == 0   ? "No instruction was recorded yet.\n"
                              : "The history begins here.\n");
  return {};
}

}  // namespace

Result<void> show_source(Session& session, std::uint64_t count) {
  auto size = size_of_history(session);
  return size ? show_up_to(session, *size, *size, count) : fail(std::move(size.error()));
}

Result<void> show_older_source(Session& session) {
  auto size = size_of_history(session);
  if (!size) return fail(std::move(size.error()));
  Shown& before = shown()[session.debugger().GetID()];
  std::uint64_t last = before.size == *size && *size != 0 ? before.first - 1 : *size;
  return show_up_to(session, last, *size, before.count);
}

}  // namespace tailtrace::lldb_plugin
