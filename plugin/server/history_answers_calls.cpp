// What HistoryAnswers says of calls.
#include <algorithm>

#include "decoder/base/text.h"
#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/newest_calls.h"
#include "decoder/history/calls/path_listing.h"
#include "decoder/history/calls/stop_stack.h"
#include "decoder/history/calls/whole_calls.h"
#include "plugin/server/answer_text.h"
#include "plugin/server/history_answers.h"

namespace tailtrace {

Result<const CallHistory*> HistoryAnswers::all_calls() {
  if (!calls_) {
    auto calls = history_->size() == 0 ? CallHistory::make(*history_, *symbols_, {})
                                       : calls_up_to(*history_, *symbols_, history_->newest());
    if (!calls) return fail(std::move(calls.error()));
    calls_ = std::make_unique<const CallHistory>(std::move(*calls));
  }
  return calls_.get();
}

Result<const CallHistory*> HistoryAnswers::newest_calls(std::uint64_t count) {
  if (count > newest_calls_size_) {
    auto calls = tailtrace::newest_calls(
        *history_, *symbols_, [count](std::uint64_t segments) { return segments > count; });
    if (!calls) return fail(std::move(calls.error()));
    newest_calls_ = std::make_unique<const CallHistory>(std::move(*calls));
    newest_calls_size_ = count;
  }
  return newest_calls_.get();
}

HistoryAnswers::Text HistoryAnswers::function_call_history(CommandWords words) {
  auto calls = all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if ((*calls)->size() == 0) return "No instruction was recorded yet.\n";
  auto range = parse_range(words.word(), {(*calls)->size(), 10, shown_calls_});
  if (!range) return range.error().to_string() + "\n";
  shown_calls_ = *range;
  return calls_text(*history_, **calls, *symbols_, *range, {}, kMaxText_bytes);
}

HistoryAnswers::Text HistoryAnswers::calls(CommandWords words) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!words.stretch(first, count)) return bad_arguments("calls FIRST COUNT [pPID.TID]");
  const bool is_near = first < 0 && is_long_ && !calls_;
  if (!is_near && !is_all()) return std::nullopt;
  // Whoever goes on backwards makes it look twice as far each time.
  const std::uint64_t back = 0 - static_cast<std::uint64_t>(first);
  auto calls = is_near ? newest_calls(back <= newest_calls_size_ ? back : 2 * back) : all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if (!is_all() && (*calls)->size() <= back) return std::nullopt;
  std::string text = head_line("tailtrace.calls/1", !is_near);
  list_calls_json(*history_, **calls, *symbols_, cut(first, count, (*calls)->size(), kMaxItems),
                  into(text), numbers_like(first));
  return text;
}

HistoryAnswers::Text HistoryAnswers::call_tree(CommandWords words) {
  std::uint64_t limit = 0, parts = 0, skipped = 0;
  bool good = words.number(limit) && words.number(parts) && words.number(skipped);
  if (!good || limit == 0 || parts == 0)
    return bad_arguments("call-tree LIMIT PARTS SKIPPED [pPID.TID]");
  const bool is_near = is_long_ && !calls_ && parts < CallHistory::kMaxSegments;
  if (!is_near && !is_all()) return std::nullopt;
  auto calls = is_near ? newest_calls(parts) : all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  if (!is_all() && (*calls)->size() <= parts) return std::nullopt;
  const CallTree tree = newest_whole_calls(*history_, **calls, limit);
  std::string text = head_line(
      "tailtrace.calls/1", false,
      {{"count", tree.calls.size()}, {"looked_at", (*calls)->size()}, {"is_cut", tree.is_cut}});
  list_whole_calls_json(*history_, **calls, *symbols_,
                        std::span(tree.calls).subspan(std::min(skipped, tree.calls.size())),
                        into(text), JsonNumbers::kFromNewest);
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
  constexpr bool kFolded = true;
  WholeCalls found = calls_of(*calls, *named, std::min(limit, kMaxItems), kFolded);
  std::reverse(found.newest.begin(), found.newest.end());
  std::string text = head_line("tailtrace.calls/1", false, {{"count", found.count}});
  list_whole_calls_json(history, *calls, *symbols_, found.newest, into(text),
                        JsonNumbers::kFromNewest);
  return text;
}

HistoryAnswers::Text HistoryAnswers::stack(CommandWords words) {
  const auto asked = item_asked_for(words);
  if (!asked) return bad_arguments("stack POSITION LIMIT [pPID.TID]");
  const History& history = *history_;
  auto calls = calls_to_anchor(history, *symbols_, asked->number, *stack_);
  if (!calls) return calls.error().to_string() + "\n";
  CallPath path;
  if (calls->holding(asked->number)) path = call_path(*calls, asked->number, asked->limit);
  add_older_callers(history, *symbols_, *calls, *stack_, asked->limit, path);
  if (path.frames.empty()) return "There is a gap at this position.\n";
  PathListing listing{asked->position > 0, "    and further callers"};
  std::string text;
  list_path(history, *symbols_, path, asked->number, listing, into(text));
  return text;
}

// With what is known by what came later, too: callers that were returned to.
HistoryAnswers::Text HistoryAnswers::frames(CommandWords words) {
  const auto asked = item_asked_for(words);
  if (!asked) return bad_arguments("frames POSITION LIMIT [pPID.TID]");
  const History& history = *history_;
  auto calls = all_calls();
  if (!calls) return calls.error().to_string() + "\n";
  CallPath path;
  if ((*calls)->holding(asked->number)) path = call_path(**calls, asked->number, asked->limit);
  add_older_callers(history, *symbols_, **calls, *stack_, asked->limit, path);
  std::string text = head_line("tailtrace.frames/1", false);
  list_frames_json(history, path, into(text));
  return text;
}

}  // namespace tailtrace
