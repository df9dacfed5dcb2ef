#include "plugin/server/monitor/history_answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "decoder/base/text.h"
#include "decoder/history/item_range.h"
#include "decoder/history/long_history.h"
#include "decoder/history/opened_thread.h"
#include "decoder/history/queries/find.h"
#include "decoder/history/queries/why_listing.h"
#include "plugin/server/monitor/answer_text.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxRecords = kMaxText_bytes / sizeof(BranchRecord);
// Addresses that one search takes.
constexpr std::size_t kMaxWanted = 256;

}  // namespace

HistoryAnswers::HistoryAnswers(std::shared_ptr<const ThreadSnapshot> snapshot,
                               std::unique_ptr<Symbolizer> symbols, const Facts& facts)
    : facts_(facts), symbols_(std::move(symbols)) {
  OpenedThread opened = records_in_place(*snapshot, snapshot, snapshot->records);
  is_long_ = is_long(*opened.source);
  HistorySettings settings;
  settings.numbers = HistorySettings::Numbers::kFromNewest;
  settings.stop = stop_.get_token();
  history_ = std::make_unique<const History>(opened.frame, opened.source, settings);
}

const HistoryAnswers::Command* HistoryAnswers::command_named(std::string_view name) {
  using M = HistoryAnswers;
  static constexpr Command kCommands[] = {
      {"instruction-history", &M::instruction_history, Part::kNewest},
      {"function-call-history", &M::function_call_history, Part::kNewest},
      {"items", &M::items, Part::kNewest},
      {"records", &M::records, Part::kNewest},
      {"calls", &M::calls, Part::kNewest},
      {"call-tree", &M::call_tree, Part::kNewest},
      {"whole-calls", &M::whole_calls},
      {"export", &M::exported},
      {"loops", &M::loops, Part::kNewest},
      {"counts", &M::counts},
      {"find", &M::find, Part::kNewest},
      {"hits", &M::hits, Part::kNewest},
      {"why", &M::why, Part::kNewest},
      {"stack", &M::stack, Part::kAll, true},
      {"frames", &M::frames, Part::kAll, true},
  };
  const Command* found = std::ranges::find(kCommands, name, &Command::name);
  return found == std::end(kCommands) ? nullptr : found;
}

bool HistoryAnswers::has(std::int64_t first) const {
  if (is_all()) return true;
  const History& history = *history_;
  return first < 0 && history.holds(history.newest() + 1 + static_cast<std::uint64_t>(first));
}

// Counts only what lies behind the newest items.
Range HistoryAnswers::items_of(std::int64_t first, std::uint64_t count, std::uint64_t most) const {
  const History& history = *history_;
  std::uint64_t back = 0 - static_cast<std::uint64_t>(first);
  if (first < 0 && back <= history.newest() && history.holds(history.newest() - back + 1))
    return cut(first, count, history.newest(), most);
  Range range = cut(first, count, history.size(), most);
  if (range.size() == 0) return range;
  return {range.first + history.oldest() - 1, range.last + history.oldest() - 1};
}

std::string HistoryAnswers::head_line(std::string_view schema, bool counted,
                                      const nlohmann::ordered_json& more) const {
  nlohmann::ordered_json json = {{"schema", schema}, {"engine", facts_.engine}};
  if (!more.is_null()) json.update(more);
  // What is long is counted only for those who ask for its oldest part.
  if (is_all() && (counted || !is_long_)) {
    json["size"] = history_->size();
    json["gaps"] = history_->gaps();
  }
  json["long"] = is_long_;
  json["state"] = facts_.head.value;
  if (is_all()) json["complete"] = history_->complete();
  if (calls_) json["calls"] = calls_->size();
  if (auto stop = history_->stop()) json["stop"] = fmt::format("{:#x}", stop->value);
  return json.dump() + "\n";
}

std::optional<HistoryAnswers::Asked> HistoryAnswers::item_asked_for(CommandWords words,
                                                                    bool or_where_it_stands) const {
  Asked asked;
  const bool good = words.number(asked.position) && words.number(asked.limit) && words.ended();
  if (!good || asked.limit == 0) return std::nullopt;
  asked.limit = std::min(asked.limit, kMaxItems);
  auto number = history_->resolve(asked.position);
  const bool stands = or_where_it_stands && asked.position == 0;
  if (stands && history_->holds(history_->newest())) number = history_->newest() + 1;
  if (!number) return std::nullopt;
  asked.number = *number;
  return asked;
}

// Whether the newest part holds all that item_range() finds, and one more.
bool HistoryAnswers::has_range(std::string_view text) const {
  if (!text.empty() && !text.starts_with('-')) return false;
  const auto range = parse_range(text, {history_->newest(), kPage, shown_items_});
  return range && range->first > 1 && history_->holds(range->first - 1);
}

HistoryAnswers::Text HistoryAnswers::instruction_history(CommandWords words) {
  const History& history = *history_;
  if (!history.holds(history.newest())) return "No instruction was recorded yet.\n";
  ListingOptions listing;
  listing.addresses = true;
  std::string_view text = trim(words.rest);
  if (text.starts_with('/')) {
    const std::string_view modifiers = words.word();
    if (modifiers.find_first_not_of("/fs") != std::string_view::npos)
      return bad_arguments("instruction-history [/fs] [RANGE]");
    listing.fold = modifiers.find('f') != std::string_view::npos;
    listing.lines = modifiers.find('s') != std::string_view::npos;
    text = trim(words.rest);
  }
  if (!is_all() && !has_range(text)) return std::nullopt;
  auto range = item_range(history, text, kPage, shown_items_);
  if (!range) return range.error().to_string() + "\n";
  shown_items_ = *range;
  return instructions_text(history, *symbols_, *range, listing, kMaxText_bytes);
}

HistoryAnswers::Text HistoryAnswers::items(CommandWords words) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!words.stretch(first, count)) return bad_arguments("items FIRST COUNT [pPID.TID]");
  if (!has(first)) return std::nullopt;
  Range range = items_of(first, count, kMaxItems);
  std::string text = head_line("tailtrace.items/1", first > 0);
  list_instructions_json(*history_, *symbols_, range, into(text), numbers_like(first));
  return text;
}

// Behind the line they are as RECORD.md has them.
HistoryAnswers::Text HistoryAnswers::records(CommandWords words) {
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!words.stretch(first, count)) return bad_arguments("records FIRST COUNT [pPID.TID]");
  const History& history = *history_;
  const Position asked{history.record_end().value + static_cast<std::uint64_t>(first)};
  if (!is_all() && (first >= 0 || !history.record(asked))) return std::nullopt;
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

HistoryAnswers::Text HistoryAnswers::loops(CommandWords words) {
  constexpr std::uint64_t kMaxSearched = 1 << 24;
  std::int64_t first = 0;
  std::uint64_t count = 0;
  if (!words.stretch(first, count)) return bad_arguments("loops FIRST COUNT [pPID.TID]");
  if (!has(first)) return std::nullopt;
  Range range = items_of(first, count, kMaxSearched);
  std::string text = head_line("tailtrace.loops/1", first > 0);
  if (range.size() != 0) list_loops_json(*history_, range, into(text), numbers_like(first));
  return text;
}

HistoryAnswers::Text HistoryAnswers::counts(CommandWords words) {
  std::optional<std::uint64_t> ends[2];
  for (auto& end : ends) {
    std::string_view word = words.word();
    end = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
  }
  if (!ends[0] || !ends[1] || !words.ended()) return bad_arguments("counts BEGIN END [pPID.TID]");
  std::string text = head_line("tailtrace.counts/1", true);
  const History& history = *history_;
  list_counts_json(history, {history.oldest(), history.newest()}, {*ends[0]}, {*ends[1]},
                   into(text));
  return text;
}

HistoryAnswers::Text HistoryAnswers::find(CommandWords words) {
  std::uint64_t limit = 0;
  std::unordered_set<Address> wanted;
  bool good = words.number(limit) && limit != 0;
  for (std::string_view word; good && !(word = words.word()).empty();) {
    auto address = parse_hex(word.starts_with("0x") ? word.substr(2) : word);
    good = address && wanted.size() < kMaxWanted;
    if (good) wanted.insert({*address});
  }
  if (!good || wanted.empty()) return bad_arguments("find LIMIT ADDRESS... [pPID.TID]");
  std::string text = head_line("tailtrace.items/1", true);
  LineSink sink = into(text);
  const History& history = *history_;
  bool more = true;
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); more && limit != 0 && cursor.valid(); cursor.prev()) {
    if (history.is_abandoned()) break;
    const HistoryItem& item = cursor.item();
    if (item.is_gap || !wanted.contains(item.instruction.address)) continue;
    --limit;
    list_instructions_json(history, *symbols_, {item.number, item.number},
                           [&](std::string_view line) { return more = sink(line); });
  }
  if (more && limit != 0 && !is_all()) return std::nullopt;
  return text;
}

HistoryAnswers::Text HistoryAnswers::hits(CommandWords words) {
  std::uint64_t limit = 0;
  bool good = words.number(limit) && limit != 0;
  std::string_view place = trim(words.rest);
  if (!good || place.empty()) return bad_arguments("hits LIMIT LOCATION [pPID.TID]");
  auto location = parse_location(place);
  if (!location) return location.error().to_string() + "\n";
  Wanted wanted;
  wanted.location = std::move(*location);
  wanted.entries = true;
  const History& history = *history_;
  std::vector<std::uint64_t> found;
  find_newest_items(history, *symbols_, wanted, [&](std::uint64_t number) {
    found.push_back(number);
    return found.size() < std::min(limit, kMaxItems);
  });
  if (found.size() < std::min(limit, kMaxItems) && !is_all()) return std::nullopt;
  std::string text = head_line("tailtrace.items/1", false);
  list_items_json(history, *symbols_, found, into(text), JsonNumbers::kFromNewest);
  return text;
}

HistoryAnswers::Text HistoryAnswers::why(CommandWords words) {
  if (!history_->holds(history_->newest()))
    return Error{ErrorCode::kNegative, "no instruction was recorded yet", {}, {}, {}}.to_string() +
           "\n";
  std::int64_t position = 0;
  if (CommandWords(words).number(position) && position != 0 && !has(position)) return std::nullopt;
  const auto asked = item_asked_for(words, true);
  if (!asked) return bad_arguments("why POSITION LIMIT [pPID.TID]");
  auto reasons = find_reasons(*history_, *symbols_, asked->number, kMaxReasons);
  if (!reasons) return reasons.error().to_string() + "\n";
  if (reasons->end == Reasons::End::kBegin && !is_all()) return std::nullopt;
  ToldReasons told(*reasons, asked->limit);
  std::string text = head_line("tailtrace.why/1", true, {{"end", told.end_word()}});
  list_reasons_json(*history_, *symbols_, told, into(text), numbers_like(asked->position));
  return text;
}

}  // namespace tailtrace
