#include "plugin/server/monitor_history.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "decoder/base/file.h"
#include "decoder/base/text.h"
#include "decoder/history/call_listing.h"
#include "decoder/history/find.h"
#include "decoder/history/item_range.h"
#include "decoder/history/listing.h"
#include "decoder/history/long_history.h"
#include "decoder/history/newest_calls.h"
#include "decoder/history/opened_thread.h"
#include "decoder/history/path_listing.h"
#include "decoder/history/stop_stack.h"
#include "decoder/history/whole_calls.h"
#include "decoder/history/why_listing.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/server/rsp/thread_selector.h"
#include "plugin/server/thread_stack.h"

namespace tailtrace {
namespace {

// What one answer holds at most: the debugger waits for all of it.
constexpr std::size_t kMaxText_bytes = 1 << 20;
constexpr std::uint64_t kMaxItems = 10'000;
constexpr std::uint64_t kMaxRecords = kMaxText_bytes / sizeof(BranchRecord);
// Addresses that one search takes.
constexpr std::size_t kMaxWanted = 256;
constexpr std::size_t kMaxMaps_bytes = 16 << 20;
constexpr std::string_view kRecords = "records";
// What is made where only the newest part is asked for: that comes at once, however much there is,
// and is enough to know whether the whole is long.
constexpr std::uint64_t kNewest_records = kLongHistory + 1;

std::string refusal(std::string what, std::string why, std::string fix) {
  return Error{ErrorCode::kUsage, std::move(what), std::move(why), std::move(fix), {}}.to_string() +
         "\n";
}

std::string bad_arguments(std::string_view usage) {
  return refusal("cannot read the command", fmt::format("it is not `{}`", usage),
                 "see `monitor tailtrace help`");
}

std::unique_ptr<Symbolizer> symbols_of(ThreadId thread, std::shared_ptr<const CodeImage> code) {
  Result<Bytes> maps = read_file(fmt::format("/proc/{}/maps", thread.pid), kMaxMaps_bytes);
  if (!maps) return std::make_unique<NoSymbols>();
  auto symbols =
      std::make_unique<ProcessSymbols>(parse_maps(as_text(*maps)), perf_map_of(thread.pid));
  symbols->know_code(std::move(code));
  return symbols;
}

// Collects lines up to the limit of an answer.
LineSink into(std::string& text) {
  return [&text](std::string_view line) {
    text.append(line).push_back('\n');
    return text.size() < kMaxText_bytes;
  };
}

// `count` things from `first` on, counted from 1 or back from -1, as far as they are among `size`.
Range cut(std::int64_t first, std::uint64_t count, std::uint64_t size, std::uint64_t most) {
  std::uint64_t begin = static_cast<std::uint64_t>(first);
  if (first < 0) {
    const std::uint64_t back = 0 - begin;
    const std::uint64_t missing = back > size ? back - size : 0;
    if (count <= missing) return {};
    count -= missing;
    begin = size + 1 - (back - missing);
  }
  if (begin > size || count == 0) return {};
  return {begin, begin + std::min({count, most, size - begin + 1}) - 1};
}

// Whoever counts from the newest is answered so.
JsonNumbers numbers_like(std::int64_t first) {
  return first < 0 ? JsonNumbers::kFromNewest : JsonNumbers::kBoth;
}

}  // namespace

Result<std::optional<std::string>> MonitorHistory::answer(std::string_view command) {
  if (Arguments{command}.word() == kRecords) return std::optional<std::string>();
  auto work = prepare(command);
  if (!work) return fail(std::move(work.error()));
  return *work ? std::optional((**work)()) : std::nullopt;
}

Result<std::optional<MonitorHistory::Work>> MonitorHistory::prepare(std::string_view command) {
  Arguments arguments{command};
  std::string_view verb = arguments.word();
  std::string (MonitorHistory::*run)(Arguments) = nullptr;
  if (verb == "instruction-history") run = &MonitorHistory::instruction_history;
  if (verb == "function-call-history") run = &MonitorHistory::function_call_history;
  if (verb == "items") run = &MonitorHistory::items;
  if (verb == kRecords) run = &MonitorHistory::records;
  if (verb == "calls") run = &MonitorHistory::calls;
  if (verb == "whole-calls") run = &MonitorHistory::whole_calls;
  if (verb == "loops") run = &MonitorHistory::loops;
  if (verb == "counts") run = &MonitorHistory::counts;
  if (verb == "find") run = &MonitorHistory::find;
  if (verb == "hits") run = &MonitorHistory::hits;
  if (verb == "why") run = &MonitorHistory::why;
  if (verb == "stack") run = &MonitorHistory::stack;
  if (verb == "frames") run = &MonitorHistory::frames;
  if (run == nullptr) return std::optional<Work>();
  std::string problem;
  auto refused = [&problem] { return std::optional<Work>([problem] { return problem; }); };
  auto thread = meant(arguments.rest, problem);
  if (!thread) return fail(std::move(thread.error()));
  if (!*thread) return refused();
  const bool is_near = verb == "items" || verb == "loops" || verb == kRecords;
  auto made = make(**thread, !is_near, problem);
  if (made && *made && !has(verb, arguments)) made = make(**thread, true, problem);
  if (!made) return fail(std::move(made.error()));
  if (!*made) return refused();
  const bool needs_stack = verb == "stack" || verb == "frames";
  if (needs_stack && !made_->stack) made_->stack = thread_stack(below_, made_->thread);
  return std::optional<Work>(
      [this, run, words = std::string(arguments.rest)] { return (this->*run)(Arguments{words}); });
}

void MonitorHistory::abandon() {
  if (made_) made_->stop.request_stop();
}

std::string_view MonitorHistory::Arguments::word() {
  std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  std::size_t end = std::min(rest.find(' ', begin), rest.size());
  std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

template <class Number>
bool MonitorHistory::Arguments::number(Number& number) {
  std::string_view digits = word();
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size();
}

bool MonitorHistory::Arguments::stretch(std::int64_t& first, std::uint64_t& count) {
  return number(first) && number(count) && first != 0;
}

std::string MonitorHistory::instruction_history(Arguments arguments) {
  const History& history = *made_->history;
  if (!history.holds(history.newest())) return "No instruction was recorded yet.\n";
  ListingOptions listing;
  listing.addresses = true;
  std::string_view word = arguments.word();
  if (word.starts_with('/')) {
    listing.fold = word.find('f') != std::string_view::npos;
    listing.lines = word.find('s') != std::string_view::npos;
    word = arguments.word();
  }
  auto range = item_range(history, word, 10, made_->shown_items);
  if (!range) return range.error().to_string() + "\n";
  made_->shown_items = *range;
  return instructions_text(history, *made_->symbols, *range, listing, kMaxText_bytes);
}

std::string MonitorHistory::function_call_history(Arguments arguments) {
  std::string problem;
  if (!make_calls(problem)) return problem;
  if (made_->calls->size() == 0) return "No instruction was recorded yet.\n";
  auto range = parse_range(arguments.word(), {made_->calls->size(), 10, made_->shown_calls});
  if (!range) return range.error().to_string() + "\n";
  made_->shown_calls = *range;
  return calls_text(*made_->history, *made_->calls, *made_->symbols, *range, {}, kMaxText_bytes);
}

// Counts only what lies behind the newest items.
Range MonitorHistory::items_of(std::int64_t first, std::uint64_t count, std::uint64_t most) const {
  const History& history = *made_->history;
  std::uint64_t back = 0 - static_cast<std::uint64_t>(first);
  if (first < 0 && back <= history.newest() && history.holds(history.newest() - back + 1))
    return cut(first, count, history.newest(), most);
  Range range = cut(first, count, history.size(), most);
  if (range.size() == 0) return range;
  return {range.first + history.oldest() - 1, range.last + history.oldest() - 1};
}

std::string MonitorHistory::items(Arguments arguments) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!arguments.stretch(first, count)) return bad_arguments("items FIRST COUNT [pPID.TID]");
  Range range = items_of(first, count, kMaxItems);
  std::string text = head_line("tailtrace.items/1", first > 0);
  list_instructions_json(*made_->history, *made_->symbols, range, into(text), numbers_like(first));
  return text;
}

// Behind the line they are as RECORD.md has them.
std::string MonitorHistory::records(Arguments arguments) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!arguments.stretch(first, count)) return bad_arguments("records FIRST COUNT [pPID.TID]");
  const History& history = *made_->history;
  const std::uint64_t begin = history.frame().first.value;
  const std::uint64_t held = history.record_end().value - begin;
  const Range range = cut(first, count, held, kMaxRecords);
  const auto at = static_cast<std::int64_t>(first < 0 ? range.first - held - 1 : range.first);
  std::string text = nlohmann::json{{"schema", "tailtrace.records/1"}, {"first", at}}.dump() + "\n";
  for (std::uint64_t number = range.first; number <= range.last; ++number) {
    const BranchRecord record = *history.record({begin + number - 1});
    text.append(reinterpret_cast<const char*>(&record), sizeof record);
  }
  return text;
}

std::string MonitorHistory::calls(Arguments arguments) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!arguments.stretch(first, count)) return bad_arguments("calls FIRST COUNT [pPID.TID]");
  std::string text;
  bool is_near = first < 0 && made_->is_long && !made_->calls;
  if (is_near) return newest_calls_json(first, count);
  if (!make_calls(text)) return text;
  text = head_line("tailtrace.calls/1", true);
  Range range = cut(first, count, made_->calls->size(), kMaxItems);
  list_calls_json(*made_->history, *made_->calls, *made_->symbols, range, into(text),
                  numbers_like(first));
  return text;
}

// Of as much of the history as it takes. Whoever goes on backwards makes it look twice as far each
// time.
std::string MonitorHistory::newest_calls_json(std::int64_t first, std::uint64_t count) {
  const std::uint64_t back = 0 - static_cast<std::uint64_t>(first);
  if (back > made_->newest_calls_size) {
    const std::uint64_t size = 2 * back;
    auto calls = newest_calls(*made_->history, *made_->symbols,
                              [size](std::uint64_t segments) { return segments > size; });
    if (!calls) return calls.error().to_string() + "\n";
    made_->newest_calls = std::make_unique<const CallHistory>(std::move(*calls));
    made_->newest_calls_size = size;
  }
  std::string text = head_line("tailtrace.calls/1", false);
  list_calls_json(*made_->history, *made_->newest_calls, *made_->symbols,
                  cut(first, count, made_->newest_calls->size(), kMaxItems), into(text),
                  JsonNumbers::kFromNewest);
  return text;
}

std::string MonitorHistory::whole_calls(Arguments arguments) {
  std::uint64_t limit = 0;
  bool good = arguments.number(limit) && limit != 0;
  std::string_view function = trim(arguments.rest);
  if (!good || function.empty()) return bad_arguments("whole-calls LIMIT FUNCTION [pPID.TID]");
  auto named = functions_named(function, *made_->symbols);
  if (!named) return named.error().to_string() + "\n";
  // All of them: made_->calls are of so many items only as can surely be kept.
  const History& history = *made_->history;
  auto calls = CallHistory::make(history, *made_->symbols, {history.oldest(), history.newest()});
  if (!calls) return calls.error().to_string() + "\n";
  constexpr bool kFolded = true;
  WholeCalls found = calls_of(*calls, *named, std::min(limit, kMaxItems), kFolded);
  std::reverse(found.newest.begin(), found.newest.end());
  std::string text = head_line("tailtrace.calls/1", false, {}, found.count);
  list_whole_calls_json(history, *calls, *made_->symbols, found, into(text),
                        JsonNumbers::kFromNewest);
  return text;
}

std::string MonitorHistory::loops(Arguments arguments) {
  constexpr std::uint64_t kMaxSearched = 1 << 24;
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!arguments.stretch(first, count)) return bad_arguments("loops FIRST COUNT [pPID.TID]");
  Range range = items_of(first, count, kMaxSearched);
  std::string text = head_line("tailtrace.loops/1", first > 0);
  if (range.size() != 0) list_loops_json(*made_->history, range, into(text), numbers_like(first));
  return text;
}

std::string MonitorHistory::counts(Arguments arguments) {
  std::optional<std::uint64_t> ends[2];
  for (auto& end : ends) {
    std::string_view word = arguments.word();
    end = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
    if (!end) return bad_arguments("counts BEGIN END [pPID.TID]");
  }
  std::string text = head_line("tailtrace.counts/1", true);
  const History& history = *made_->history;
  list_counts_json(history, {history.oldest(), history.newest()}, {*ends[0]}, {*ends[1]},
                   into(text));
  return text;
}

std::string MonitorHistory::find(Arguments arguments) {
  std::uint64_t limit = 0;
  std::unordered_set<Address> wanted;
  bool good = arguments.number(limit) && limit != 0;
  for (std::string_view word; good && !(word = arguments.word()).empty();) {
    auto address = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
    good = address && wanted.size() < kMaxWanted;
    if (good) wanted.insert({*address});
  }
  if (!good || wanted.empty()) return bad_arguments("find LIMIT ADDRESS... [pPID.TID]");
  std::string text = head_line("tailtrace.items/1", true);
  LineSink sink = into(text);
  const History& history = *made_->history;
  bool more = true;
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); more && limit != 0 && cursor.valid(); cursor.prev()) {
    if (history.is_abandoned()) break;
    const HistoryItem& item = cursor.item();
    if (item.is_gap || !wanted.contains(item.instruction.address)) continue;
    --limit;
    list_instructions_json(history, *made_->symbols, {item.number, item.number},
                           [&](std::string_view line) { return more = sink(line); });
  }
  return text;
}

std::string MonitorHistory::hits(Arguments arguments) {
  std::uint64_t limit = 0;
  bool good = arguments.number(limit) && limit != 0;
  std::string_view place = trim(arguments.rest);
  if (!good || place.empty()) return bad_arguments("hits LIMIT LOCATION [pPID.TID]");
  auto location = parse_location(place);
  if (!location) return location.error().to_string() + "\n";
  Wanted wanted;
  wanted.location = std::move(*location);
  wanted.entries = true;
  const History& history = *made_->history;
  std::vector<std::uint64_t> found;
  find_newest_items(history, *made_->symbols, wanted, [&](std::uint64_t number) {
    found.push_back(number);
    return found.size() < std::min(limit, kMaxItems);
  });
  std::string text = head_line("tailtrace.items/1", false);
  list_items_json(history, *made_->symbols, found, into(text), JsonNumbers::kFromNewest);
  return text;
}

std::optional<MonitorHistory::Asked> MonitorHistory::item_asked_for(Arguments arguments) const {
  Asked asked;
  if (!arguments.number(asked.position) || !arguments.number(asked.limit) || asked.limit == 0)
    return std::nullopt;
  asked.limit = std::min(asked.limit, kMaxItems);
  const auto number = made_->history->resolve(asked.position);
  if (!number) return std::nullopt;
  asked.number = *number;
  return asked;
}

std::string MonitorHistory::why(Arguments arguments) {
  const auto asked = item_asked_for(arguments);
  if (!asked) return bad_arguments("why POSITION LIMIT [pPID.TID]");
  auto reasons = find_reasons(*made_->history, *made_->symbols, asked->number, kMaxReasons);
  if (!reasons) return reasons.error().to_string() + "\n";
  ToldReasons told(*reasons, asked->limit);
  std::string text = head_line("tailtrace.why/1", true, told.end_word());
  list_reasons_json(*made_->history, *made_->symbols, told, into(text),
                    numbers_like(asked->position));
  return text;
}

std::string MonitorHistory::stack(Arguments arguments) {
  const auto asked = item_asked_for(arguments);
  if (!asked) return bad_arguments("stack POSITION LIMIT [pPID.TID]");
  const History& history = *made_->history;
  auto calls = calls_to_anchor(history, *made_->symbols, asked->number, *made_->stack);
  if (!calls) return calls.error().to_string() + "\n";
  CallPath path;
  if (calls->holding(asked->number)) path = call_path(*calls, asked->number, asked->limit);
  add_older_callers(history, *made_->symbols, *calls, *made_->stack, asked->limit, path);
  if (path.frames.empty()) return "There is a gap at this position.\n";
  PathListing listing{asked->position > 0, "    and further callers"};
  std::string text;
  list_path(history, *made_->symbols, path, asked->number, listing, into(text));
  return text;
}

// With what is known by what came later, too: callers that were returned to.
std::string MonitorHistory::frames(Arguments arguments) {
  const auto asked = item_asked_for(arguments);
  if (!asked) return bad_arguments("frames POSITION LIMIT [pPID.TID]");
  const History& history = *made_->history;
  std::string text;
  if (!make_calls(text)) return text;
  const CallHistory& calls = *made_->calls;
  CallPath path;
  if (calls.holding(asked->number)) path = call_path(calls, asked->number, asked->limit);
  add_older_callers(history, *made_->symbols, calls, *made_->stack, asked->limit, path);
  text = head_line("tailtrace.frames/1", false);
  list_frames_json(history, path, into(text));
  return text;
}

// The line that all others come behind.
std::string MonitorHistory::head_line(std::string_view schema, bool count, std::string_view end,
                                      std::optional<std::uint64_t> found) const {
  const History& history = *made_->history;
  nlohmann::ordered_json json = {{"schema", schema}, {"engine", recorder_.engine().name()}};
  if (!end.empty()) json["end"] = end;
  if (found) json["count"] = *found;
  // What is long is counted only for those who ask for its oldest part.
  if (count || !made_->is_long) {
    json["size"] = history.size();
    json["gaps"] = history.gaps();
  }
  json["long"] = made_->is_long;
  json["state"] = made_->head.value;  // grows as the thread goes on
  if (made_->is_whole) json["complete"] = history.complete();
  if (made_->calls) json["calls"] = made_->calls->size();
  if (auto stop = history.stop()) json["stop"] = fmt::format("{:#x}", stop->value);
  return json.dump() + "\n";
}

bool MonitorHistory::make_calls(std::string& problem) {
  if (made_->calls) return true;
  const History& history = *made_->history;
  // So many of the newest as can be kept.
  auto calls = history.size() == 0 ? CallHistory::make(history, *made_->symbols, {})
                                   : calls_up_to(history, *made_->symbols, history.newest());
  if (!calls) {
    problem = calls.error().to_string() + "\n";
    return false;
  }
  made_->calls = std::make_unique<const CallHistory>(std::move(*calls));
  return true;
}

bool MonitorHistory::has(std::string_view verb, Arguments arguments) const {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (made_->is_whole || !arguments.stretch(first, count)) return true;
  const History& history = *made_->history;
  const std::uint64_t behind = static_cast<std::uint64_t>(first);
  if (verb == kRecords) return first < 0 && history.record({history.record_end().value + behind});
  return first < 0 && history.holds(history.newest() + 1 + behind);
}

Result<std::optional<ThreadId>> MonitorHistory::meant(std::string_view& words,
                                                      std::string& problem) {
  std::size_t space = words.find_last_of(' ');
  std::string_view last = space == std::string_view::npos ? words : words.substr(space + 1);
  if (last.starts_with('p')) {
    auto named = rsp::parse_thread(last);
    words.remove_suffix(last.size());
    if (named && named->is_thread()) return std::optional(named->thread());
    problem = bad_arguments("... pPID.TID");
    return std::optional<ThreadId>();
  }
  auto thread = below_.debugger_thread();
  if (thread && !*thread)
    problem = refusal("cannot show a history", "no thread is selected", "start the program first");
  return thread;
}

Result<bool> MonitorHistory::make(ThreadId id, bool whole, std::string& problem) {
  RecordedThread* thread = recorder_.find(id);
  if (thread == nullptr) {
    made_.reset();
    problem = refusal("cannot show a history", "the thread is not recorded", "record btrace");
    return false;
  }
  auto stop = recorder_.settle(*thread);
  if (!stop) return fail(std::move(stop.error()));
  auto head = recorder_.engine().head(id);
  if (!head) return fail(std::move(head.error()));
  if (made_ && made_->thread == id && made_->head == *head && made_->pc == stop->pc &&
      (made_->is_whole || !whole) && !made_->history->is_abandoned())
    return true;
  auto snapshot = recorder_.visible(*thread, whole ? ~0ull : kNewest_records);
  if (!snapshot) return fail(std::move(snapshot.error()));
  const bool is_whole = whole || snapshot->records.size() < kNewest_records;
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(*snapshot));
  OpenedThread opened = records_in_place(*shared, shared, shared->records);
  HistorySettings settings;
  settings.numbers = HistorySettings::Numbers::kFromNewest;
  std::stop_source abandoned;
  settings.stop = abandoned.get_token();
  made_ = Made{.thread = id,
               .head = *head,
               .pc = stop->pc,
               .is_whole = is_whole,
               .is_long = is_long(*opened.source),
               .stop = std::move(abandoned),
               .history = std::make_unique<const History>(opened.frame, opened.source, settings),
               .symbols = symbols_of(id, opened.frame.code)};
  return true;
}

}  // namespace tailtrace
