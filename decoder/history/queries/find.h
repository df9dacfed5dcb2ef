// Finding items of a history: by place, by kind, by time.
//
// What is asked of an instruction is asked once for all runs that are the same, so that a search
// takes time in proportion to the records, not to the instructions.
//
// Threading: a pure function; one thread at a time for a symbolizer.
#pragma once

#include <functional>

#include "decoder/history/history.h"
#include "decoder/history/location.h"
#include "decoder/history/range.h"

namespace tailtrace {

// A kind of item: a class of instructions ("call"), conditional branches by their outcome ("taken",
// "not-taken"), "gap", or an event that took the flow away ("signal").
struct ItemKind {
  enum class Sort : std::uint8_t { kClass, kTaken, kNotTaken, kGap, kEvent };
  Sort sort = Sort::kClass;
  InstructionClass instruction = InstructionClass::kOther;  // kClass
  RecordKind event = RecordKind::kNone;                     // kEvent
};

// Errors: kUsage with the words there are.
Result<ItemKind> parse_item_kind(std::string_view word);

// Those words.
std::vector<std::string> item_kind_words();

// Whether a record tells of an event and not of a branch or an edge.
bool is_event(const BranchRecord& record);

// All that is given must hold.
struct Wanted {
  std::optional<Location> location;
  bool entries = false;  // of the location only where a breakpoint on it would stop
  std::optional<ItemKind> kind;
  // Of the last time known before the item, in the thread's clock units. An item without a time is
  // at none.
  std::uint64_t since = 0;
  std::uint64_t until = ~0ull;
};

enum class Order : std::uint8_t { kOldestFirst, kNewestFirst };

// Calls `see` with the numbers of the items that match, until it says false. An event is found at
// the item that follows it, or at the newest. REQUIRES: a range of the history.
void find_items(const History& history, Symbolizer& symbols, Range range, const Wanted& wanted,
                Order order, const std::function<bool(std::uint64_t)>& see);

// The same of all items, the newest first. Which is the oldest is not asked before it is met.
void find_newest_items(const History& history, Symbolizer& symbols, const Wanted& wanted,
                       const std::function<bool(std::uint64_t)>& see);

}  // namespace tailtrace
