#include "decoder/history/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "decoder/base/json_text.h"
#include "decoder/base/text.h"
#include "decoder/history/counts.h"
#include "decoder/history/interruption.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Where control went when that is not in the instruction's own text.
bool target_is_told(const Instruction& insn) { return !insn.target.is_null(); }

// Events that took the flow away before the instruction an item shows, oldest first.
std::vector<BranchRecord> events_before(const History& history, const HistoryItem& item) {
  constexpr std::size_t kMaxEvents = 16;
  std::vector<BranchRecord> events;
  if (!item.begins_run) return events;
  for (std::uint64_t at = item.record.value; at != 0; --at) {
    std::optional<BranchRecord> record = history.record({at - 1});
    if (!record || !record->is_async() || events.size() == kMaxEvents) break;
    if (is_interruption(record->kind)) events.push_back(*record);
    if (record->insns != 0) break;
  }
  std::reverse(events.begin(), events.end());
  return events;
}

// "worker.cc:88", or the module's name where no line is known.
std::string line_text(const Function& function, const std::optional<SourceLine>& line) {
  if (!line) return std::string(base_name(function.module));
  return fmt::format("{}:{}", base_name(line->file), line->line);
}

// "clamp in " in an inlined function, to stand before the name of the one that it is in.
std::string inlined_text(Symbolizer& symbols, Address address, Epoch when) {
  std::string text;
  for (const InlinedFunction& inlined : symbols.inlined_at(address, when))
    text += inlined.name + " in ";
  return text;
}

std::string address_text(Symbolizer& symbols, Address address, Epoch when) {
  std::string place = place_text(symbols, address, when);
  std::string number = fmt::format("{:#x}", address.value);
  return place.empty() ? number : fmt::format("{} <{}>", number, place);
}

std::int64_t position_number(const History& history, std::uint64_t number, bool from_newest) {
  return from_newest ? history.from_newest(number)
                     : static_cast<std::int64_t>(history.from_oldest(number));
}

// " (last exit at :93)", of a loop in that file.
std::string exit_text(Symbolizer& symbols, const Loop& loop, std::string_view file) {
  if (loop.exit.is_null()) return {};
  std::optional<SourceLine> line = symbols.line_at(loop.exit, loop.epoch);
  if (line && line->file == file) return fmt::format(" (last exit at :{})", line->line);
  return fmt::format(" (last exit at {})", address_text(symbols, loop.exit, loop.epoch));
}

class TextLister {
 public:
  TextLister(const History& history, Symbolizer& symbols, const ListingOptions& options,
             const ItemLineSink& sink)
      : history_(history), symbols_(symbols), options_(options), sink_(sink) {}

  void list(std::span<const std::uint64_t> numbers) {
    HistoryCursor cursor(history_);
    for (std::uint64_t number : numbers) width_ = std::max(width_, position(number).size());
    for (std::uint64_t number : numbers) {
      cursor.seek(number);
      if (more_) show(cursor);
    }
  }

  void list(Range range) {
    HistoryCursor cursor(history_);
    width_ = std::max(position(range.first).size(), position(range.last).size());
    std::vector<Loop> loops;
    if (options_.fold) loops = find_loops(history_, range);
    auto loop = loops.begin();
    cursor.seek(range.first);
    while (more_ && cursor.valid() && cursor.item().number <= range.last) {
      if (loop != loops.end() && loop->items.first == cursor.item().number) {
        item_ = loop->items.first;
        put("  " + loop_text(history_, symbols_, *loop, options_.from_newest));
        function_ = nullptr;
        cursor.seek(loop++->items.last);
      } else {
        show(cursor);
      }
      cursor.next();
    }
  }

 private:
  std::string position(std::uint64_t number) const {
    return fmt::format("[{}]", position_number(history_, number, options_.from_newest));
  }

  void put(const std::string& line) { more_ = more_ && sink_(item_, line); }

  void show(HistoryCursor& cursor) {
    const HistoryItem& item = cursor.item();
    item_ = item.number;
    for (const BranchRecord& event : events_before(history_, item))
      put(event_line(event, item.epoch));
    if (item.is_gap) {
      put(fmt::format("  -- gap {}: {} --", position(item.number), gap_text(item.gap)));
      function_ = nullptr;
      return;
    }
    show_header(item);
    put(instruction_line(cursor));
  }

  std::string event_line(const BranchRecord& event, Epoch epoch) const {
    return fmt::format("  -- {} at {} --", event_text(event), address_text(event.from, epoch));
  }

  void show_header(const HistoryItem& item) {
    const Address address = item.instruction.address;
    const Function& function = symbols_.function_in(address, item.epoch);
    const bool same = function_ != nullptr && function_->name == function.name &&
                      function_->module == function.module;
    if (same && !options_.lines) return;
    std::string line = line_text(function, symbols_.line_at(address, item.epoch));
    if (same && line == line_) return;
    function_ = &function;
    line_ = std::move(line);
    // Without a header for each line inlined functions would stand for what follows as well.
    put("  " + where_text(symbols_, address, item.epoch, options_.lines));
  }

  std::string address_text(Address address, Epoch when) const {
    return tailtrace::address_text(symbols_, address, when);
  }

  std::string instruction_line(HistoryCursor& cursor) const {
    const HistoryItem& item = cursor.item();
    Bytes bytes = cursor.bytes();
    std::string text = disassemble(bytes, item.instruction.address);
    std::size_t space = std::min(text.find(' '), text.size());
    std::string operands = space == text.size() ? "" : text.substr(space + 1);
    if (target_is_told(item.instruction))
      operands = address_text(item.instruction.target, item.epoch);
    std::string line = fmt::format("    {:<{}}  ", position(item.number), width_);
    if (options_.addresses) line += fmt::format("{:#x}  ", item.instruction.address.value);
    if (options_.bytes) line += fmt::format("{:<21}  ", to_hex(bytes));
    line += fmt::format("{:<5} {}", text.substr(0, space), operands);
    std::string outcome = outcome_text(item);
    if (!outcome.empty()) line = fmt::format("{:<{}}  {}", line, width_ + 41, outcome);
    if (options_.times && item.time != 0) line += fmt::format("  time {}", item.time);
    while (line.back() == ' ') line.pop_back();
    return line;
  }

  std::string outcome_text(const HistoryItem& item) const {
    if (item.instruction.kind == InstructionClass::kConditional)
      return item.branch != nullptr ? "taken" : "not taken";
    if (item.branch == nullptr || target_is_told(item.instruction) || item.branch->to.is_null() ||
        item.branch->to == item.instruction.next())
      return {};
    return "-> " + address_text(item.branch->to, item.epoch);
  }

  const History& history_;
  Symbolizer& symbols_;
  const ListingOptions& options_;
  const ItemLineSink& sink_;
  std::size_t width_ = 0;
  bool more_ = true;
  std::uint64_t item_ = 0;              // that is being shown
  const Function* function_ = nullptr;  // of the last header
  std::string line_;
};

ItemLineSink without_items(const LineSink& sink) {
  return [&sink](std::uint64_t, std::string_view line) { return sink(line); };
}

std::string hex(Address address) { return fmt::format("{:#x}", address.value); }

OrderedJson gap_json(const Gap& gap) {
  OrderedJson json = {{"gap", reason_name(gap.reason)}, {"text", gap_text(gap)}};
  if (!gap.at.is_null()) json["address"] = hex(gap.at);
  if (gap.lost != 0) json["lost"] = gap.lost;
  if (gap.lost_more) json["lost_more"] = true;
  return json;
}

OrderedJson inlined_json(Symbolizer& symbols, Address address, Epoch when) {
  OrderedJson json = OrderedJson::array();
  for (const InlinedFunction& inlined : symbols.inlined_at(address, when)) {
    OrderedJson one = {{"function", inlined.name}};
    if (!inlined.call_file.empty()) one["call_file"] = inlined.call_file;
    if (inlined.call_line != 0) one["call_line"] = inlined.call_line;
    json.push_back(std::move(one));
  }
  return json;
}

OrderedJson place_json(Symbolizer& symbols, Address address, Epoch when) {
  OrderedJson json = OrderedJson::object();
  const Function& function = symbols.function_in(address, when);
  if (!function.name.empty()) json["function"] = function.name;
  if (!function.name.empty() && !function.entry.is_null() && function.entry <= address)
    json["offset"] = fmt::format("{:#x}", address - function.entry);
  if (!function.module.empty()) json["module"] = function.module;
  if (std::optional<SourceLine> line = symbols.line_at(address, when)) {
    json["file"] = line->file;
    json["line"] = line->line;
  }
  if (OrderedJson inlined = inlined_json(symbols, address, when); !inlined.empty())
    json["inlined"] = std::move(inlined);
  return json;
}

// What stands within the braces of an object.
std::string members(const OrderedJson& json) {
  const std::string text = json_text(json);
  return text.substr(1, text.size() - 2);
}

OrderedJson item_number(const History& history, std::uint64_t item, JsonNumbers numbers) {
  if (numbers == JsonNumbers::kFromNewest) return history.from_newest(item);
  return history.from_oldest(item);
}

OrderedJson events_json(const std::vector<BranchRecord>& events) {
  OrderedJson json = OrderedJson::array();
  for (const BranchRecord& event : events) {
    OrderedJson one = {{"event", kind_name(event.kind)}, {"at", hex(event.from)}};
    if (event.extra != 0) one["code"] = event.extra;
    json.push_back(std::move(one));
  }
  return json;
}

// Writes items, of which most are of instructions that were executed before.
class JsonLister {
 public:
  JsonLister(const History& history, Symbolizer& symbols, JsonNumbers numbers)
      : history_(history), symbols_(symbols), numbers_(numbers) {}

  std::string object(HistoryCursor& cursor) {
    const HistoryItem& item = cursor.item();
    std::string text = "{";
    if (numbers_ == JsonNumbers::kBoth)
      text += fmt::format("\"number\":{},", history_.from_oldest(item.number));
    text += fmt::format("\"position\":{},", history_.from_newest(item.number));
    text += item.is_gap ? members(gap_json(item.gap)) : instruction(cursor) + outcome(item);
    if (item.time != 0) text += fmt::format(",\"time\":{}", item.time);
    const std::vector<BranchRecord> events = events_before(history_, item);
    if (!events.empty()) text += ",\"events\":" + events_json(events).dump();
    return text + "}";
  }

 private:
  static constexpr std::size_t kMaxKnown = 1 << 16;

  // What is the same each time.
  const std::string& instruction(HistoryCursor& cursor) {
    const HistoryItem& item = cursor.item();
    if (item.epoch != epoch_ || known_.size() == kMaxKnown) known_.clear();
    epoch_ = item.epoch;
    const Address address = item.instruction.address;
    std::string& text = known_[address];
    if (!text.empty()) return text;
    const Bytes bytes = cursor.bytes();
    OrderedJson json = {
        {"address", hex(address)}, {"bytes", to_hex(bytes)}, {"text", disassemble(bytes, address)}};
    json.update(place_json(symbols_, address, item.epoch));
    return text = members(json);
  }

  static std::string outcome(const HistoryItem& item) {
    std::string text;
    if (item.instruction.kind == InstructionClass::kConditional)
      text += fmt::format(",\"taken\":{}", item.branch != nullptr);
    if (item.branch == nullptr) return text;
    text += fmt::format(",\"branch\":\"{}\"", kind_name(item.branch->kind));
    if (!item.branch->to.is_null()) text += fmt::format(",\"to\":\"{}\"", hex(item.branch->to));
    return text;
  }

  const History& history_;
  Symbolizer& symbols_;
  JsonNumbers numbers_;
  Epoch epoch_;
  std::unordered_map<Address, std::string> known_;  // of this epoch
};

}  // namespace

std::string event_text(const BranchRecord& event) {
  std::string text(kind_name(event.kind));
  return event.extra == 0 ? text : fmt::format("{} {}", text, event.extra);
}

void list_instructions(const History& history, Symbolizer& symbols, Range range,
                       const ListingOptions& options, const LineSink& sink) {
  list_item_lines(history, symbols, range, options, without_items(sink));
}

void list_item_lines(const History& history, Symbolizer& symbols, Range range,
                     const ListingOptions& options, const ItemLineSink& sink) {
  TextLister(history, symbols, options, sink).list(range);
}

void list_items(const History& history, Symbolizer& symbols, std::span<const std::uint64_t> numbers,
                const ListingOptions& options, const LineSink& sink) {
  TextLister(history, symbols, options, without_items(sink)).list(numbers);
}

void list_instructions_json(const History& history, Symbolizer& symbols, Range range,
                            const LineSink& sink, JsonNumbers numbers) {
  if (range.size() == 0)
    return;  // its first item, which is none, would be looked for to the oldest
  HistoryCursor cursor(history);
  JsonLister lister(history, symbols, numbers);
  bool more = true;
  for (cursor.seek(range.first); more && cursor.valid() && cursor.item().number <= range.last;
       cursor.next())
    more = sink(lister.object(cursor));
}

void list_items_json(const History& history, Symbolizer& symbols,
                     std::span<const std::uint64_t> items, const LineSink& sink,
                     JsonNumbers numbers) {
  HistoryCursor cursor(history);
  JsonLister lister(history, symbols, numbers);
  for (std::uint64_t item : items) {
    cursor.seek(item);
    if (!sink(lister.object(cursor))) return;
  }
}

std::string where_text(Symbolizer& symbols, Address address, Epoch when, bool inlined) {
  const Function& function = symbols.function_in(address, when);
  const std::optional<SourceLine> line = symbols.line_at(address, when);
  std::string where = line_text(function, line), name = function.name;
  if (inlined) name = inlined_text(symbols, address, when) + name;
  if (function.name.empty()) name += "(no symbol)";
  if (function.name.empty() && !line) where = place_text(symbols, address, when);
  return where.empty() ? name : fmt::format("{}  {}", where, name);
}

namespace {

// "x1234 loop worker.cc:90-94 (last exit at :93)"
std::string loop_place_text(Symbolizer& symbols, const Loop& loop) {
  std::optional<SourceLine> head = symbols.line_at(loop.head, loop.epoch);
  std::optional<SourceLine> back = symbols.line_at(loop.back, loop.epoch);
  std::string where = address_text(symbols, loop.head, loop.epoch);
  if (head && back && head->file == back->file) {
    auto [low, high] = std::minmax(head->line, back->line);
    where = fmt::format("{}:{}", base_name(head->file), low);
    if (low != high) where += fmt::format("-{}", high);
  }
  return fmt::format("x{} loop {}{}", loop.rounds, where,
                     exit_text(symbols, loop, head ? head->file : ""));
}

OrderedJson loop_json(const History& history, const Loop& loop, JsonNumbers numbers) {
  OrderedJson json = {{"first", item_number(history, loop.items.first, numbers)},
                      {"last", item_number(history, loop.items.last, numbers)},
                      {"rounds", loop.rounds},
                      {"head", hex(loop.head)},
                      {"back", hex(loop.back)}};
  if (!loop.exit.is_null()) json["exit"] = hex(loop.exit);
  return json;
}

}  // namespace

std::string loop_text(const History& history, Symbolizer& symbols, const Loop& loop,
                      bool from_newest) {
  return fmt::format("{}  [{}..{}]", loop_place_text(symbols, loop),
                     position_number(history, loop.items.first, from_newest),
                     position_number(history, loop.items.last, from_newest));
}

void list_loops_json(const History& history, Range range, const LineSink& sink,
                     JsonNumbers numbers) {
  for (const Loop& loop : find_loops(history, range))
    if (!sink(loop_json(history, loop, numbers).dump())) return;
}

void list_folded_json(const History& history, Symbolizer& symbols, Range range,
                      const LineSink& sink) {
  bool more = true;
  LineSink wanted = [&](std::string_view line) { return more = sink(line); };
  std::uint64_t next = range.first;
  for (const Loop& loop : find_loops(history, range)) {
    list_instructions_json(history, symbols, {next, loop.items.first - 1}, wanted);
    if (!more) return;
    OrderedJson json = loop_json(history, loop, JsonNumbers::kBoth);
    json["text"] = loop_place_text(symbols, loop);
    if (!wanted(json_text(json))) return;
    next = loop.items.last + 1;
  }
  list_instructions_json(history, symbols, {next, range.last}, wanted);
}

void list_counts_json(const History& history, Range range, Address begin, Address end,
                      const LineSink& sink) {
  for (const auto& [address, count] : count_executions(history, range, begin, end)) {
    OrderedJson json = {{"address", hex(address)}, {"times", count.times}};
    if (count.kind == InstructionClass::kConditional) json["taken"] = count.transfers;
    if (!sink(json.dump())) return;
  }
}

std::string text_of(std::size_t limit_bytes, const std::function<void(const LineSink&)>& lister) {
  std::string text;
  lister([&](std::string_view line) {
    if (text.size() + line.size() >= limit_bytes) {
      text += "  -- the listing is cut here: ask for a smaller range --\n";
      return false;
    }
    text.append(printable(line)).push_back('\n');
    return true;
  });
  return text;
}

std::string instructions_text(const History& history, Symbolizer& symbols, Range range,
                              const ListingOptions& options, std::size_t limit_bytes) {
  return text_of(limit_bytes, [&](const LineSink& sink) {
    list_instructions(history, symbols, range, options, sink);
  });
}

}  // namespace tailtrace
