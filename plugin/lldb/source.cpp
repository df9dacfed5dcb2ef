#include "plugin/lldb/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "decoder/base/text.h"
#include "plugin/lldb/native.h"
#include "plugin/lldb/positions.h"
#include "plugin/lldb/recording.h"

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
  std::uint64_t size = 0, first = 1, count = kSourcePage;
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

void add_older(std::vector<SourceRow>& rows, const Json& item, std::uint64_t number) {
  if (rows.empty() || rows.back().is_loop() || !same_place(rows.back().what, item))
    rows.push_back({item, number, number});
  rows.back().what = item;
  rows.back().first = number;
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
  for (auto line = lines->rbegin(); line != lines->rend() - 1; ++line, --number)
    add_older(rows, *line, number);
  return {};
}

Result<std::uint64_t> size_of_history(Session& session) {
  auto head = session.monitor_json("items 1 0");
  if (!head) return fail(std::move(head.error()));
  return head->front().value("size", std::uint64_t{0});
}

// What is shown at a time, newest first.
struct Page {
  std::uint64_t size = 0;  // of the history
  std::vector<SourceRow> rows;
  std::string said;  // about the history
};
// `last` is the newest item of a page; nothing: the history's.
using Last = std::optional<std::uint64_t>;

// At least `count` rows and one more, as far as kMaxSearched goes. Errors: as the server has them.
Result<Page> page_of_process(Session& session, Last last, std::uint64_t count) {
  auto size = size_of_history(session);
  if (!size) return fail(std::move(size.error()));
  Page page{*size, {}, {}};
  const std::uint64_t newest = last.value_or(*size);
  const std::uint64_t end = newest - std::min(newest, kMaxSearched);
  auto loops = loops_in(session, end + 1, newest);
  if (!loops) return fail(std::move(loops.error()));
  for (std::uint64_t at = newest; page.rows.size() <= count && at > end;
       at = page.rows.back().first - 1) {
    const std::uint64_t behind = loops->empty() ? end : loops->back().last;
    if (behind == at) {
      page.rows.push_back(std::move(loops->back()));
      loops->pop_back();
    } else {
      const std::uint64_t first = at - std::min(at - behind, kPiece) + 1;
      auto added = add_lines(session, first, at, page.rows);
      if (!added) return fail(std::move(added.error()));
    }
  }
  return page;
}

// What `tailtrace history --json=lines --fold` says.
Page page_in(const std::string& text) {
  Page page;
  std::vector<Json> items;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Json item = Json::parse(line, nullptr, false);
    if (!item.is_object())
      page.said += line + "\n";
    else if (item.contains("schema"))
      page.size = item.value("size", std::uint64_t{0});
    else
      items.push_back(std::move(item));
  }
  for (auto item = items.rbegin(); item != items.rend(); ++item)
    if (item->contains("rounds"))
      page.rows.push_back({*item, item->value("first", 0ull), item->value("last", 0ull)});
    else
      add_older(page.rows, *item, item->value("number", 0ull));
  return page;
}

// The same of a recording, by the command line, which has its own errors.
Result<Page> page_of_recording(Session& session, Last last, std::uint64_t count) {
  for (std::uint64_t searched = kPiece;; searched = std::min(searched * 10, kMaxSearched)) {
    std::string range = fmt::format("-{},-1", last == 0 ? 1 : searched);
    if (last.value_or(0) != 0)
      range = fmt::format("{},{}", *last - std::min(*last, searched) + 1, *last);
    auto text = answer_of_recording(session, "history", {"--json=lines", "--fold", range});
    if (!text) return fail(std::move(text.error()));
    Page page = page_in(*text);
    if (last == 0) page.rows.clear();
    bool is_all = page.rows.empty() || page.rows.back().first == 1 || searched == kMaxSearched;
    if (is_all || page.rows.size() > count) return page;
  }
}

Result<Page> page_of(Session& session, Last last, std::uint64_t count) {
  if (!has_recording(session) && !has_native(session)) {
    auto page = page_of_process(session, last, count);
    bool is_lldbs =
        !page && page.error().code == ErrorCode::kNoEngine && session.target().GetTrace().IsValid();
    if (!is_lldbs) return page;
  }
  return page_of_recording(session, last, count);
}

lldb::SBLineEntry line_at(Session& session, const Json& what, const char* key) {
  std::uint64_t address = std::strtoull(what.value(key, "").c_str(), nullptr, 16);
  return session.target().ResolveLoadAddress(address).GetLineEntry();
}

// By the path that the debug information has, else by what LLDB takes in its place.
std::string text_of_line(Session& session, const Json& item) {
  const std::uint32_t number = item.value("line", 0u);
  std::ifstream file(item.value("file", ""));
  lldb::SBLineEntry line = file ? lldb::SBLineEntry() : line_at(session, item, "address");
  char path[4096] = {};
  if (line.GetLine() == number && line.GetFileSpec().GetPath(path, sizeof path) != 0)
    file.open(path);
  std::string text;
  for (std::uint32_t n = 0; n < number && std::getline(file, text);) ++n;
  return file && number != 0 ? text : std::string();
}

std::string loop_text(Session& session, const Json& loop) {
  if (loop.contains("text")) return loop.value("text", "");
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
  if (row.is_loop()) return range + printable(loop_text(session, row.what)) + "\n";
  if (row.what.contains("gap"))
    return range + fmt::format("-- gap: {} --\n", printable(row.what.value("text", "")));
  std::string line = text_of_line(session, row.what);
  return range + printable(place_of(row.what)) + "\n" +
         (line.empty() ? "" : "      " + line + "\n");
}

void show(Session& session, Page page, std::uint64_t count) {
  page.rows.resize(std::min<std::size_t>(page.rows.size(), count));
  std::string text = page.said;
  for (auto row = page.rows.rbegin(); row != page.rows.rend(); ++row)
    text += text_of(session, *row, page.size);
  shown()[session.debugger().GetID()] = {page.size, page.rows.empty() ? 1 : page.rows.back().first,
                                         count};
  session.print(!page.rows.empty() ? text
                : page.size == 0   ? "No instruction was recorded yet.\n"
                                   : "The history begins here.\n");
}

}  // namespace

Result<void> show_source(Session& session, std::uint64_t count, std::int64_t standing) {
  Last last;
  if (standing != 0) {
    auto size = size_of_history(session);
    if (!size) return fail(std::move(size.error()));
    last = *size - std::min(*size, static_cast<std::uint64_t>(-standing));
  }
  auto page = page_of(session, last, count);
  if (!page) return fail(std::move(page.error()));
  show(session, std::move(*page), count);
  return {};
}

Result<void> show_older_source(Session& session) {
  const Shown before = shown()[session.debugger().GetID()];
  auto page = page_of(session, before.first - 1, before.count);
  if (!page || page->size != before.size) page = page_of(session, {}, before.count);
  if (!page) return fail(std::move(page.error()));
  show(session, std::move(*page), before.count);
  return {};
}

}  // namespace tailtrace::lldb_plugin
