// What HistoryAnswers says of calls.
#include <algorithm>

#include "decoder/base/json_text.h"
#include "decoder/base/text.h"
#include "decoder/export/folded_stacks.h"
#include "decoder/export/lcov.h"
#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/newest_calls.h"
#include "decoder/history/calls/path_listing.h"
#include "decoder/history/calls/stop_stack.h"
#include "decoder/history/calls/whole_calls.h"
#include "plugin/server/monitor/answer_text.h"
#include "plugin/server/monitor/history_answers.h"

namespace tailtrace {
namespace {

constexpr std::string_view kFolded = "folded", kLcov = "lcov";

}  // namespace

Result<const CallHistory*> HistoryAnswers::all_calls() {
  if (!calls_) {
    auto calls = history_->size() == 0 ? CallHistory::make(*history_, *symbols_, {})
                                       : calls_up_to(*history_, *symbols_, history_->newest());
    if (!calls) return fail(std::move(calls.error()));
    calls_ = std::make_unique<const CallHistory>(std::move(*calls));
  }
  return calls_.get();
}

Result<const CallHistory*> HistoryAnswers::newest_calls(const EnoughCalls& enough) {
  const bool are_known =
      newest_calls_ && (enough(newest_calls_->size()) || !holds_older(*history_, *newest_calls_));
  if (!are_known) {
    auto calls = tailtrace::newest_calls(*history_, *symbols_, enough);
    if (!calls) return fail(std::move(calls.error()));
    newest_calls_ = std::make_unique<const CallHistory>(std::move(*calls));
  }
  return is_all() || enough(newest_calls_->size()) ? newest_calls_.get() : nullptr;
}

HistoryAnswers::Text HistoryAnswers::function_call_history(CommandWords words) {
  const std::string_view text = trim(words.rest);
  const bool is_near = is_long_ && !calls_ && (text.empty() || text.starts_with('-'));
  if (!is_near && !is_all()) return std::nullopt;
  // Ranges that were shown are kept as if there were so many calls: others may be looked at later.
  constexpr std::uint64_t kAll = std::uint64_t{1} << 62;
  auto range_among = [&](std::uint64_t size) -> Result<Range> {
    std::optional<Range> shown = shown_calls_;
    if (shown) *shown = {shown->first - (kAll - size), shown->last - (kAll - size)};
    return parse_range(text, {size, kPage, shown});
  };
  auto enough = [&](std::uint64_t size) {
    if (shown_calls_ && shown_calls_->first <= kAll - size) return false;
    const auto range = range_among(size);
    return range && range->first > 1;
  };
  auto calls = is_near ? newest_calls(enough) : all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if (*calls == nullptr) return std::nullopt;
  const std::uint64_t size = (*calls)->size();
  if (size == 0) return "No instruction was recorded yet.\n";
  const auto range = range_among(size);
  if (!range) return range.error().to_string() + "\n";
  shown_calls_ = {range->first + (kAll - size), range->last + (kAll - size)};
  return calls_text(*history_, **calls, *symbols_, *range, {}, kMaxText_bytes);
}

HistoryAnswers::Text HistoryAnswers::calls(CommandWords words) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!words.stretch(first, count)) return bad_arguments("calls FIRST COUNT [pPID.TID]");
  const bool is_near = first < 0 && is_long_ && !calls_;
  if (!is_near && !is_all()) return std::nullopt;
  const std::uint64_t back = 0 - static_cast<std::uint64_t>(first);
  auto calls =
      is_near ? newest_calls([back](std::uint64_t size) { return size > back; }) : all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if (*calls == nullptr) return std::nullopt;
  std::string text = head_line("tailtrace.calls/1", !is_near);
  list_calls_json(*history_, **calls, *symbols_, cut(first, count, (*calls)->size(), kMaxItems),
                  into(text), numbers_like(first));
  return text;
}

HistoryAnswers::Text HistoryAnswers::call_tree(CommandWords words) {
  std::uint64_t limit = 0, parts = 0, skipped = 0;
  const bool good = words.number(limit) && words.number(parts) && words.number(skipped);
  if (!good || !words.ended() || limit == 0 || parts == 0)
    return bad_arguments("call-tree LIMIT PARTS SKIPPED [pPID.TID]");
  const bool is_near = is_long_ && !calls_ && parts < CallHistory::kMaxSegments;
  if (!is_near && !is_all()) return std::nullopt;
  auto calls =
      is_near ? newest_calls([parts](std::uint64_t size) { return size > parts; }) : all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if (*calls == nullptr) return std::nullopt;
  const CallTree tree = newest_whole_calls(*history_, **calls, limit);
  std::string text = head_line(
      "tailtrace.calls/1", false,
      {{"count", tree.calls.size()}, {"looked_at", (*calls)->size()}, {"is_cut", tree.is_cut}});
  list_whole_calls_json(*history_, **calls, *symbols_,
                        std::span(tree.calls).subspan(std::min(skipped, tree.calls.size())),
                        into(text), JsonNumbers::kFromNewest);
  return text;
}

// The error's text, if there is one.
std::string HistoryAnswers::export_lines(Exported& asked, Range range) {
  const LineSink sink = [&](std::string_view line) {
    asked.lines.push_back(json_text(nlohmann::json(line)));
    return !history_->is_abandoned();
  };
  if (asked.format == kLcov) {
    Coverage coverage;
    coverage.add(*history_, *symbols_, range);
    list_lcov(
        coverage, [](const std::string&) { return true; }, sink);
    return {};
  }
  auto calls = all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  list_folded_stacks(**calls, sink, range);
  return {};
}

// Lines of a file, each a JSON string, behind the first few.
HistoryAnswers::Text HistoryAnswers::exported(CommandWords words) {
  Exported asked;
  std::size_t skipped = 0;
  asked.format = words.word();
  const bool good = words.number(asked.first) && words.number(asked.last) && words.number(skipped);
  const auto first = history_->resolve(asked.first), last = history_->resolve(asked.last);
  if (!good || !words.ended() || !first || !last ||
      (asked.format != kLcov && asked.format != kFolded))
    return bad_arguments("export folded|lcov FIRST LAST SKIPPED [pPID.TID]");
  if (!exported_.is_same(asked)) {
    std::string problem = export_lines(asked, {*first, *last});
    if (!problem.empty()) return problem;
    exported_ = std::move(asked);
  }
  std::string text = head_line("tailtrace.export/1", false);
  const LineSink sink = into(text);
  for (std::size_t i = skipped; i < exported_.lines.size() && sink(exported_.lines[i]);) ++i;
  return text;
}

HistoryAnswers::Text HistoryAnswers::whole_calls(CommandWords words) {
  std::uint64_t limit = 0;
  bool good = words.number(limit) && limit != 0;
  std::string_view function = trim(words.rest);
  if (!good || function.empty()) return bad_arguments("whole-calls LIMIT FUNCTION [pPID.TID]");
  auto named = functions_named(function, *symbols_);
  if (!named) return named.error().to_string() + "\n";
  // All of them: all_calls() are of so many items only as can surely be kept.
  const History& history = *history_;
  auto calls = CallHistory::make(history, *symbols_, {history.oldest(), history.newest()});
  if (!calls) return calls.error().to_string() + "\n";
  constexpr bool kTogether = true;
  WholeCalls found = calls_of(*calls, *named, std::min(limit, kMaxItems), kTogether);
  std::reverse(found.newest.begin(), found.newest.end());
  std::string text = head_line("tailtrace.calls/1", false, {{"count", found.count}});
  list_whole_calls_json(history, *calls, *symbols_, found.newest, into(text),
                        JsonNumbers::kFromNewest);
  return text;
}

Result<const CallHistory*> HistoryAnswers::calls_to_anchor(std::uint64_t item) {
  if (anchor_of(*history_, item) == history_->newest()) return all_calls();
  auto calls = calls_up_to(*history_, *symbols_, item);
  if (!calls) return fail(std::move(calls.error()));
  older_calls_ = std::make_unique<const CallHistory>(std::move(*calls));
  return older_calls_.get();
}

CallPath HistoryAnswers::path_among(const CallHistory& calls, const Asked& asked) {
  CallPath path;
  if (calls.holding(asked.number))
    path = call_path(*history_, *symbols_, calls, asked.number, asked.limit);
  add_older_callers(*history_, *symbols_, calls, *stack_, asked.limit, path);
  return path;
}

HistoryAnswers::Text HistoryAnswers::stack(CommandWords words) {
  const auto asked = item_asked_for(words);
  if (!asked) return bad_arguments("stack POSITION LIMIT [pPID.TID]");
  auto calls = calls_to_anchor(asked->number);
  if (!calls) return calls.error().to_string() + "\n";
  const CallPath path = path_among(**calls, *asked);
  if (path.frames.empty()) return "There is a gap at this position.\n";
  PathListing listing{asked->position > 0, "    and further callers"};
  std::string text;
  list_path(*history_, *symbols_, path, asked->number, listing, into(text));
  return text;
}

// With what is known by what came later, too: callers that were returned to.
HistoryAnswers::Text HistoryAnswers::frames(CommandWords words) {
  const auto asked = item_asked_for(words);
  if (!asked) return bad_arguments("frames POSITION LIMIT [pPID.TID]");
  auto calls = all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  std::string text = head_line("tailtrace.frames/1", false);
  list_frames_json(*history_, path_among(**calls, *asked), into(text));
  return text;
}

}  // namespace tailtrace
