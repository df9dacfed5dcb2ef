#include "plugin/server/monitor_history.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "decoder/base/file.h"
#include "decoder/history/call_listing.h"
#include "decoder/history/listing.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace {
namespace {

// What one answer holds at most: the debugger waits for all of it.
constexpr std::size_t kMaxText_bytes = 1 << 20;
constexpr std::uint64_t kMaxItems = 10'000;
// Addresses that one search takes.
constexpr std::size_t kMaxWanted = 256;
constexpr std::size_t kMaxMaps_bytes = 16 << 20;

std::string refusal(std::string what, std::string why, std::string fix) {
  return Error{ErrorCode::kUsage, std::move(what), std::move(why), std::move(fix), {}}.to_string() +
         "\n";
}

std::string bad_arguments(std::string_view usage) {
  return refusal("cannot read the command", fmt::format("it is not `{}`", usage),
                 "see `monitor tailtrace help`");
}

std::unique_ptr<Symbolizer> symbols_of(ThreadId thread) {
  Result<Bytes> maps = read_file(fmt::format("/proc/{}/maps", thread.pid), kMaxMaps_bytes);
  if (!maps) return std::make_unique<NoSymbols>();
  return std::make_unique<ProcessSymbols>(parse_maps(as_text(*maps)));
}

// Collects lines up to the limit of an answer.
LineSink into(std::string& text) {
  return [&text](std::string_view line) {
    text.append(line).push_back('\n');
    return text.size() < kMaxText_bytes;
  };
}

// Numbers [first, first + count) of `size`.
Range cut(std::uint64_t first, std::uint64_t count, std::uint64_t size) {
  if (first > size || count == 0) return {};
  return {first, first + std::min({count, kMaxItems, size - first + 1}) - 1};
}

}  // namespace

std::string_view MonitorHistory::help() {
  return "monitor tailtrace instruction-history [/fs] [RANGE]\n"
         "monitor tailtrace function-call-history [RANGE]\n"
         "                                    what the thread did last; a range is N, N,M, N,+K,\n"
         "                                    N,-K or -, counted from 1 or back from -1;\n"
         "                                    /f folds loops, /s tells source lines\n"
         "monitor tailtrace items FIRST COUNT [pPID.TID]\n"
         "monitor tailtrace calls FIRST COUNT [pPID.TID]\n"
         "                                    the same for scripts, as JSON lines: COUNT of them "
         "or,\n"
         "                                    when that is too long for an answer, the first few\n"
         "monitor tailtrace loops FIRST COUNT [pPID.TID]\n"
         "                                    loops among these instructions\n"
         "monitor tailtrace counts BEGIN END [pPID.TID]\n"
         "                                    how often the code at these addresses was executed\n"
         "monitor tailtrace find LIMIT ADDRESS... [pPID.TID]\n"
         "                                    the newest instructions at these addresses, as many "
         "as\n"
         "                                    an answer holds\n";
}

Result<std::optional<std::string>> MonitorHistory::answer(std::string_view command) {
  Arguments arguments{command};
  std::string_view verb = arguments.word();
  std::string (MonitorHistory::*run)(Arguments) = nullptr;
  if (verb == "instruction-history") run = &MonitorHistory::instruction_history;
  if (verb == "function-call-history") run = &MonitorHistory::function_call_history;
  if (verb == "items") run = &MonitorHistory::items;
  if (verb == "calls") run = &MonitorHistory::calls;
  if (verb == "loops") run = &MonitorHistory::loops;
  if (verb == "counts") run = &MonitorHistory::counts;
  if (verb == "find") run = &MonitorHistory::find;
  if (run == nullptr) return std::optional<std::string>();
  std::string problem;
  auto made = make_meant(arguments.rest, problem);
  if (!made) return fail(std::move(made.error()));
  return std::optional(*made ? (this->*run)(arguments) : problem);
}

std::string_view MonitorHistory::Arguments::word() {
  std::size_t begin = std::min(rest.find_first_not_of(' '), rest.size());
  std::size_t end = std::min(rest.find(' ', begin), rest.size());
  std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

bool MonitorHistory::Arguments::number(std::uint64_t& number, std::uint64_t least) {
  std::string_view digits = word();
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() && number >= least;
}

std::string MonitorHistory::instruction_history(Arguments arguments) {
  const History& history = *made_->history;
  if (history.size() == 0) return "No instruction was recorded yet.\n";
  ListingOptions listing{.addresses = true};
  std::string_view word = arguments.word();
  if (word.starts_with('/')) {
    listing.fold = word.find('f') != std::string_view::npos;
    listing.lines = word.find('s') != std::string_view::npos;
    word = arguments.word();
  }
  auto range = parse_range(word, {history.size(), 10, made_->shown_items});
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

std::string MonitorHistory::items(Arguments arguments) {
  std::uint64_t first = 0, count = 0;
  if (!arguments.number(first, 1) || !arguments.number(count, 0))
    return bad_arguments("items FIRST COUNT [pPID.TID]");
  std::string text = head_line("tailtrace.items/1");
  Range range = cut(first, count, made_->history->size());
  list_instructions_json(*made_->history, *made_->symbols, range, into(text));
  return text;
}

std::string MonitorHistory::calls(Arguments arguments) {
  std::uint64_t first = 0, count = 0;
  if (!arguments.number(first, 1) || !arguments.number(count, 0))
    return bad_arguments("calls FIRST COUNT [pPID.TID]");
  std::string text;
  if (!make_calls(text)) return text;
  text = head_line("tailtrace.calls/1");
  Range range = cut(first, count, made_->calls->size());
  list_calls_json(*made_->history, *made_->calls, *made_->symbols, range, into(text));
  return text;
}

std::string MonitorHistory::loops(Arguments arguments) {
  constexpr std::uint64_t kMaxSearched = 1 << 24;
  std::uint64_t first = 0, count = 0;
  if (!arguments.number(first, 1) || !arguments.number(count, 0))
    return bad_arguments("loops FIRST COUNT [pPID.TID]");
  std::string text = head_line("tailtrace.loops/1");
  std::uint64_t size = made_->history->size();
  if (first > size || count == 0) return text;
  std::uint64_t last = first + std::min({count, kMaxSearched, size - first + 1}) - 1;
  list_loops_json(*made_->history, {first, last}, into(text));
  return text;
}

std::string MonitorHistory::counts(Arguments arguments) {
  std::optional<std::uint64_t> ends[2];
  for (auto& end : ends) {
    std::string_view word = arguments.word();
    end = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
    if (!end) return bad_arguments("counts BEGIN END [pPID.TID]");
  }
  std::string text = head_line("tailtrace.counts/1");
  list_counts_json(*made_->history, {1, made_->history->size()}, {*ends[0]}, {*ends[1]},
                   into(text));
  return text;
}

std::string MonitorHistory::find(Arguments arguments) {
  std::uint64_t limit = 0;
  std::unordered_set<Address> wanted;
  bool good = arguments.number(limit, 1);
  for (std::string_view word; good && !(word = arguments.word()).empty();) {
    auto address = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
    good = address && wanted.size() < kMaxWanted;
    if (good) wanted.insert({*address});
  }
  if (!good || wanted.empty()) return bad_arguments("find LIMIT ADDRESS... [pPID.TID]");
  std::string text = head_line("tailtrace.items/1");
  LineSink sink = into(text);
  bool more = true;
  HistoryCursor cursor(*made_->history);
  for (cursor.seek_to_newest(); more && limit != 0 && cursor.valid(); cursor.prev()) {
    const HistoryItem& item = cursor.item();
    if (item.is_gap || !wanted.contains(item.instruction.address)) continue;
    --limit;
    list_instructions_json(*made_->history, *made_->symbols, {item.number, item.number},
                           [&](std::string_view line) { return more = sink(line); });
  }
  return text;
}

// The line that all others come behind.
std::string MonitorHistory::head_line(std::string_view schema) const {
  const History& history = *made_->history;
  nlohmann::ordered_json json = {{"schema", schema},
                                 {"engine", recorder_.engine().name()},
                                 {"size", history.size()},
                                 {"gaps", history.gaps()},
                                 {"complete", history.complete()}};
  if (made_->calls) json["calls"] = made_->calls->size();
  if (auto stop = history.stop()) json["stop"] = fmt::format("{:#x}", stop->value);
  return json.dump() + "\n";
}

bool MonitorHistory::make_calls(std::string& problem) {
  if (made_->calls) return true;
  const History& history = *made_->history;
  auto calls = CallHistory::make(history, *made_->symbols, {1, history.size()});
  if (!calls) {
    problem = calls.error().to_string() + "\n";
    return false;
  }
  made_->calls = std::make_unique<const CallHistory>(std::move(*calls));
  return true;
}

Result<bool> MonitorHistory::make_meant(std::string_view& words, std::string& problem) {
  std::size_t space = words.find_last_of(' ');
  std::string_view last = space == std::string_view::npos ? words : words.substr(space + 1);
  if (last.starts_with('p')) {
    auto named = rsp::parse_thread(last);
    words.remove_suffix(last.size());
    if (named && named->is_thread()) return make(named->thread(), problem);
    problem = bad_arguments("... pPID.TID");
    return false;
  }
  auto thread = below_.debugger_thread();
  if (!thread) return fail(std::move(thread.error()));
  if (*thread) return make(**thread, problem);
  problem = refusal("cannot show a history", "no thread is selected", "start the program first");
  return false;
}

Result<bool> MonitorHistory::make(ThreadId id, std::string& problem) {
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
  if (made_ && made_->thread == id && made_->head == *head && made_->pc == stop->pc) return true;
  auto snapshot = recorder_.visible(*thread);
  if (!snapshot) return fail(std::move(snapshot.error()));
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(*snapshot));
  made_ = Made{.thread = id,
               .head = *head,
               .pc = stop->pc,
               .history = std::make_unique<const History>(std::move(shared)),
               .symbols = symbols_of(id),
               .calls = nullptr,
               .shown_items = {},
               .shown_calls = {}};
  return true;
}

}  // namespace tailtrace
