#include "plugin/lldb/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <vector>

#include "plugin/lldb/search.h"

namespace tailtrace::lldb_plugin {
namespace {

// Instructions that one question to the server asks for, and all that are looked at.
constexpr std::uint64_t kPiece = 2000, kMaxSearched = 100'000;

// Consecutive instructions of a line, or a loop; the item or the loop, and the numbers of the first
// instruction and the last.
struct SourceRow {
  Json what;
  std::uint64_t first = 0, last = 0;

  bool is_loop() const { return what.contains("rounds"); }
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

// The loops among these instructions, oldest first. Errors: as the server has them.
Result<std::vector<SourceRow>> loops_in(Session& session, std::uint64_t first, std::uint64_t last) {
  std::vector<SourceRow> loops;
  if (first > last) return loops;
  auto lines = session.monitor_json(fmt::format("loops {} {}", first, last - first + 1));
  if (!lines) return fail(std::move(lines.error()));
  for (auto line = lines->begin() + 1; line != lines->end(); ++line)
    loops.push_back({*line, line->value("first", first), line->value("last", first)});
  return loops;
}

// Adds the lines of the piece of the history that ends with `last`, newest first. Errors: as the
// server has them.
Result<void> add_lines(Session& session, std::uint64_t first, std::uint64_t last,
                       std::vector<SourceRow>& rows) {
  auto lines = session.monitor_json(fmt::format("items {} {}", first, last - first + 1));
  if (!lines) return fail(std::move(lines.error()));
  std::uint64_t number = last;
  for (auto line = lines->rbegin(); line != lines->rend() - 1; ++line, --number) {
    if (rows.empty() || rows.back().is_loop() || !same_place(rows.back().what, *line))
      rows.push_back({*line, number, number});
    rows.back().what = *line;
    rows.back().first = number;
  }
  return {};
}

lldb::SBLineEntry line_at(Session& session, const Json& what, const char* key) {
  std::uint64_t address = std::strtoull(what.value(key, "").c_str(), nullptr, 16);
  return session.target().ResolveLoadAddress(address).GetLineEntry();
}

std::string text_of_line(Session& session, const Json& item) {
  lldb::SBLineEntry line = line_at(session, item, "address");
  char path[4096] = {};
  if (!line.IsValid() || line.GetFileSpec().GetPath(path, sizeof path) == 0) return {};
  std::ifstream file(path);
  std::string text;
  for (std::uint32_t n = 0; n < line.GetLine() && std::getline(file, text);) ++n;
  return file ? text : std::string();
}

std::string loop_text(Session& session, const Json& loop) {
  lldb::SBLineEntry head = line_at(session, loop, "head"), back = line_at(session, loop, "back");
  std::string where = loop.value("head", "??");
  if (head.IsValid() && back.IsValid()) {
    auto [low, high] = std::minmax({head.GetLine(), back.GetLine()});
    const char* file = head.GetFileSpec().GetFilename();
    where = fmt::format("{}:{}", file == nullptr ? "??" : file, low);
    if (low != high) where += fmt::format("-{}", high);
  }
  return fmt::format("x{} loop {}", loop.value("rounds", 0), where);
}

std::string text_of(Session& session, const SourceRow& row, std::uint64_t size) {
  std::string range = fmt::format("  [-{},-{}]  ", size + 1 - row.first, size + 1 - row.last);
  if (row.is_loop()) return range + loop_text(session, row.what) + "\n";
  if (row.what.contains("gap"))
    return range + fmt::format("-- gap: {} --\n", row.what.value("text", ""));
  std::string line = text_of_line(session, row.what);
  return range + place_of(row.what) + "\n" + (line.empty() ? "" : "      " + line + "\n");
}

Result<std::uint64_t> size_of_history(Session& session) {
  auto head = session.monitor_json("items 1 0");
  if (!head) return fail(std::move(head.error()));
  return head->front().value("size", std::uint64_t{0});
}

// The rows that end with the item `last`.
Result<void> show_up_to(Session& session, std::uint64_t last, std::uint64_t size,
                        std::uint64_t count) {
  std::vector<SourceRow> rows;
  const std::uint64_t end = last - std::min(last, kMaxSearched);
  auto loops = loops_in(session, end + 1, last);
  if (!loops) return fail(std::move(loops.error()));
  for (std::uint64_t at = last; rows.size() <= count && at > end; at = rows.back().first - 1) {
    const std::uint64_t behind = loops->empty() ? end : loops->back().last;
    if (behind == at) {
      rows.push_back(std::move(loops->back()));
      loops->pop_back();
    } else {
      const std::uint64_t first = at - std::min(at - behind, kPiece) + 1;
      if (auto added = add_lines(session, first, at, rows); !added) return added;
    }
  }
  rows.resize(std::min<std::size_t>(rows.size(), count));
  std::string text;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) text += text_of(session, *row, size);
  shown()[session.debugger().GetID()] = {size, rows.empty() ? 1 : rows.back().first, count};
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
