#include "decoder/history/calls/call_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Segments are read through for their source lines up to here; a loop may run for ever.
constexpr std::uint64_t kMaxLineItems = 1 << 16;
constexpr int kMaxIndentLevels = 40;

struct LineSpan {
  std::string_view file;
  unsigned first = 0;
  unsigned last = 0;
  bool more = false;  // not all of the segment was looked at

  bool known() const { return first != 0; }
};

// The lines of its own source file that a segment touched.
LineSpan lines_of(const CallSegment& segment, HistoryCursor& cursor, Symbolizer& symbols) {
  LineSpan span;
  std::uint64_t end = std::min(segment.items.last, segment.items.first + kMaxLineItems - 1);
  span.more = end != segment.items.last;
  for (std::uint64_t n = segment.items.first; n <= end; ++n) {
    cursor.seek(n);
    std::optional<SourceLine> line =
        symbols.line_at(cursor.item().instruction.address, cursor.item().epoch);
    if (!line || line->line == 0) continue;
    if (!span.known()) span = {line->file, line->line, line->line, span.more};
    if (line->file != span.file) continue;
    span.first = std::min(span.first, line->line);
    span.last = std::max(span.last, line->line);
  }
  return span;
}

std::string lines_text(const LineSpan& span) {
  if (!span.known()) return {};
  std::string last = span.last == span.first ? "" : fmt::format("-{}", span.last);
  return fmt::format("{}:{}{}{}", base_name(span.file), span.first, last, span.more ? "+" : "");
}

std::string name_of(const Function& function) {
  if (!function.name.empty()) return function.name;
  if (function.module.empty()) return "??";
  return fmt::format("?? ({})", base_name(function.module));
}

std::int64_t back_from_newest(std::uint64_t number, std::uint64_t size) {
  return static_cast<std::int64_t>(number - size) - 1;
}

// The first level that is too deep to be shown.
std::int32_t too_deep(const CallHistory& calls, Range range, std::int32_t depth) {
  if (depth == kAllLevels) return kAllLevels;
  std::int32_t lowest = kAllLevels - depth;
  for (std::uint64_t n = range.first; n <= range.last; ++n) {
    const CallSegment segment = calls.at(n);
    if (segment.function != nullptr) lowest = std::min(lowest, segment.level);
  }
  return lowest + depth;
}

bool is_hidden(const CallSegment& segment, std::int32_t too_deep) {
  return segment.function != nullptr && segment.level >= too_deep;
}

class CallLister {
 public:
  CallLister(const History& history, const CallHistory& calls, Symbolizer& symbols,
             const CallListingOptions& options)
      : history_(history), calls_(calls), symbols_(symbols), options_(options), cursor_(history) {}

  void list(Range range, const LineSink& sink) {
    const std::size_t width = std::max(position(range.first).size(), position(range.last).size());
    std::vector<FoldedCalls> folded;
    if (options_.fold) folded = folded_calls(range);
    auto fold = folded.begin();
    const std::int32_t hidden = too_deep(calls_, range, options_.depth);
    for (std::uint64_t n = range.first; n <= range.last; ++n) {
      const bool is_folded = fold != folded.end() && fold->segments.first == n;
      const bool is_shown = !is_hidden(calls_.at(n), hidden);
      const std::string text =
          is_shown ? (is_folded ? loop_line(*fold) : line(calls_.at(n))) : std::string();
      if (is_shown && !sink(fmt::format("    {:<{}}  {}", position(n), width, text))) return;
      if (is_folded) n = fold++->segments.last;
    }
  }

 private:
  // A loop that calls, and the segments between the first part of the call that it is in and the
  // last one.
  struct FoldedCalls {
    Loop loop;
    Range segments;
  };

  std::vector<FoldedCalls> folded_calls(Range range) const {
    std::vector<FoldedCalls> folded;
    const Range items{calls_.at(range.first).items.first, calls_.at(range.last).items.last};
    for (const Loop& loop : find_loops(history_, items)) {
      const Range segments{calls_.holding(loop.items.first).value_or(0) + 1,
                           calls_.holding(loop.items.last).value_or(0) - 1};
      if (segments.first > range.first && segments.first < segments.last)
        folded.push_back({loop, segments});
    }
    return folded;
  }

  std::string indented(const CallSegment& segment) const {
    const int levels = options_.indent ? std::min(segment.level, kMaxIndentLevels) : 0;
    return std::string(static_cast<std::size_t>(levels) * 2, ' ');
  }

  std::string loop_line(const FoldedCalls& folded) {
    return indented(calls_.at(folded.segments.first)) +
           loop_text(history_, symbols_, folded.loop, options_.from_newest);
  }

  std::string position(std::uint64_t number) const {
    if (!options_.from_newest) return fmt::format("[{}]", number);
    return fmt::format("[{}]", back_from_newest(number, calls_.size()));
  }

  std::string items(const Range& range) const {
    if (options_.from_newest)
      return fmt::format("[{},{}]", history_.from_newest(range.first),
                         history_.from_newest(range.last));
    return fmt::format("[{},{}]", history_.from_oldest(range.first),
                       history_.from_oldest(range.last));
  }

  std::string line(const CallSegment& segment) {
    if (segment.function == nullptr) {
      cursor_.seek(segment.items.first);
      return fmt::format("-- gap: {} --", gap_text(cursor_.item().gap));
    }
    std::string text = indented(segment) + name_of(*segment.function);
    std::string lines;
    if (options_.lines) lines = lines_text(lines_of(segment, cursor_, symbols_));
    if (!lines.empty()) text = fmt::format("{:<31} {}", text, lines);
    if (options_.items) text = fmt::format("{:<47} {}", text, items(segment.items));
    if (options_.times) {
      cursor_.seek(segment.items.first);
      if (cursor_.item().time != 0) text += fmt::format("  time {}", cursor_.item().time);
    }
    return text;
  }

  const History& history_;
  const CallHistory& calls_;
  Symbolizer& symbols_;
  const CallListingOptions& options_;
  HistoryCursor cursor_;
};

void put_function(OrderedJson& json, const CallSegment& segment, HistoryCursor& cursor,
                  Symbolizer& symbols) {
  if (!segment.function->name.empty()) json["function"] = segment.function->name;
  if (!segment.function->module.empty()) json["module"] = segment.function->module;
  LineSpan lines = lines_of(segment, cursor, symbols);
  if (!lines.known()) return;
  json["file"] = lines.file;
  json["first_line"] = lines.first;
  json["last_line"] = lines.last;
  if (lines.more) json["more_lines"] = true;
}

// Items and segments as they are named.
struct Names {
  const History& history;
  const CallHistory& calls;
  JsonNumbers numbers;

  OrderedJson item(std::uint64_t number) const {
    if (numbers == JsonNumbers::kFromNewest) return history.from_newest(number);
    return history.from_oldest(number);
  }
  OrderedJson segment(std::uint64_t number) const {
    if (numbers == JsonNumbers::kFromNewest) return back_from_newest(number, calls.size());
    return number;
  }
};

OrderedJson segment_json(const Names& names, const CallSegment& segment, HistoryCursor& cursor,
                         Symbolizer& symbols) {
  OrderedJson json;
  if (names.numbers == JsonNumbers::kBoth) json["number"] = segment.number;
  json["position"] = back_from_newest(segment.number, names.calls.size());
  if (segment.function == nullptr) {
    cursor.seek(segment.items.first);
    json["gap"] = reason_name(cursor.item().gap.reason);
    json["text"] = gap_text(cursor.item().gap);
  } else {
    put_function(json, segment, cursor, symbols);
  }
  json["level"] = segment.level;
  json["first"] = names.item(segment.items.first);
  json["last"] = names.item(segment.items.last);
  if (segment.caller != 0) json["caller"] = names.segment(segment.caller);
  if (segment.earlier != 0) json["earlier"] = names.segment(segment.earlier);
  if (segment.later != 0) json["later"] = names.segment(segment.later);
  if (segment.tail_called) json["tail_called"] = true;
  if (segment.begun_before) json["begun_before"] = true;
  cursor.seek(segment.items.first);
  if (cursor.item().time != 0) json["time"] = cursor.item().time;
  return json;
}

}  // namespace

void list_calls(const History& history, const CallHistory& calls, Symbolizer& symbols, Range range,
                const CallListingOptions& options, const LineSink& sink) {
  CallLister(history, calls, symbols, options).list(range, sink);
}

void list_calls_json(const History& history, const CallHistory& calls, Symbolizer& symbols,
                     Range range, const LineSink& sink, JsonNumbers numbers, std::int32_t depth) {
  HistoryCursor cursor(history);
  Names names{history, calls, numbers};
  const std::int32_t hidden = too_deep(calls, range, depth);
  for (std::uint64_t n = range.first; n <= range.last; ++n) {
    const CallSegment segment = calls.at(n);
    if (is_hidden(segment, hidden)) continue;
    OrderedJson json = segment_json(names, segment, cursor, symbols);
    if (!sink(json_text(json))) return;
  }
}

std::string calls_text(const History& history, const CallHistory& calls, Symbolizer& symbols,
                       Range range, const CallListingOptions& options, std::size_t limit_bytes) {
  return text_of(limit_bytes, [&](const LineSink& sink) {
    list_calls(history, calls, symbols, range, options, sink);
  });
}

}  // namespace tailtrace
