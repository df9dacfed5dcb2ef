// Listings: a stretch of a history as text for people or as JSON.
//
// Newest last, positions in brackets, a function header only where it changes, gaps and events on
// lines of their own that cannot be overlooked:
//
//     worker.cc:88  Worker::step
//       [-14]  cmp   ebx, [rdi+0x10]
//       [-13]  jge   0x401022 <Worker::step+0x22>   not taken
//     -- gap [-12]: 40 instructions not shown: the code at 0x7f0000001000 is not known --
//     x1234 loop worker.cc:90-94 (last exit at :93)  [-11..-4]
//
// Pure functions: whatever shows the text (a command, a debugger, Python) makes the same of it.
//
// Threading: one thread at a time for a cursor and a symbolizer.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "decoder/history/history.h"
#include "decoder/history/loops.h"
#include "decoder/history/range.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {

// Takes a line without its line feed; false: enough.
using LineSink = std::function<bool(std::string_view)>;

struct ListingOptions {
  bool from_newest = true;  // positions count back from -1, else forward from 1
  bool lines = false;       // a header wherever the source line changes too
  bool addresses = false;
  bool bytes = false;
  bool times = false;  // the last known time, where one is
  bool fold = false;   // a loop that went round three times or more is one line
};

// REQUIRES: a range of the cursor's history.
void list_instructions(const History& history, Symbolizer& symbols, Range range,
                       const ListingOptions& options, const LineSink& sink);

// Takes a line and the number of the item it is about: of headers and events the one that follows,
// of folded loops the first.
using ItemLineSink = std::function<bool(std::uint64_t item, std::string_view line)>;

// The same, with the items.
void list_item_lines(const History& history, Symbolizer& symbols, Range range,
                     const ListingOptions& options, const ItemLineSink& sink);

// The same for single items, by their numbers. REQUIRES: numbers of the history's items.
void list_items(const History& history, Symbolizer& symbols, std::span<const std::uint64_t> numbers,
                const ListingOptions& options, const LineSink& sink);

// How JSON objects name items and segments.
enum class JsonNumbers : std::uint8_t {
  kBoth,       // as "number" from 1; items and segments also as "position" from -1
  kFromNewest  // from -1 alone, also where they refer to each other: nothing need be counted
};

// One JSON object a line for each item, fit for a document's array or for JSON lines:
//   {"number":7,"position":-3,"address":"0x401022","bytes":"7402","text":"jz 0x401026",
//    "function":"Worker::step","offset":"0x22","module":"/usr/bin/x","file":"worker.cc","line":88,
//    "inlined":[{"function":"clamp","call_file":"worker.cc","call_line":80}],
//    "taken":false,"to":"0x401026","time":12}
// "inlined" are the functions that the compiler put there, innermost first, and where they are
// called.
//   {"number":8,"position":-2,"gap":"no-code","text":"...","lost":40,"lost_more":false}
// What is not known is left out.
void list_instructions_json(const History& history, Symbolizer& symbols, Range range,
                            const LineSink& sink, JsonNumbers numbers = JsonNumbers::kBoth);

// The same for single items. REQUIRES: numbers of the history's items.
void list_items_json(const History& history, Symbolizer& symbols,
                     std::span<const std::uint64_t> items, const LineSink& sink,
                     JsonNumbers numbers = JsonNumbers::kBoth);

// "worker.cc:88  Worker::step": a place as a header has it. "libc.so.6  read" without a line;
// "worker.cc:12  clamp in Worker::step" in an `inlined` function; "libc.so.6+0x1234  (no symbol)".
std::string where_text(Symbolizer& symbols, Address address, Epoch when = kNewestEpoch,
                       bool inlined = true);

// "signal 11", "exception": what happened, without where.
std::string event_text(const BranchRecord& event);

// "x1234 loop worker.cc:90-94 (last exit at :93)  [-11..-4]": a loop in one line, the same wherever
// loops are folded.
std::string loop_text(const History& history, Symbolizer& symbols, const Loop& loop,
                      bool from_newest);

// One JSON object a line for each loop of the range (find_loops):
//   {"first":3,"last":90,"rounds":29,"head":"0x401000","back":"0x401009","exit":"0x401009"}
// "exit" is where it was left, if it was.
void list_loops_json(const History& history, Range range, const LineSink& sink,
                     JsonNumbers numbers = JsonNumbers::kBoth);

// list_instructions_json, but for loops, each of which is one object: as list_loops_json has it,
// with
//   "text":"x29 loop worker.cc:90-94 (last exit at :93)"
void list_folded_json(const History& history, Symbolizer& symbols, Range range,
                      const LineSink& sink);

// One JSON object a line for each instruction of [begin, end) that was executed in the range:
//   {"address":"0x401000","times":12,"taken":3}
// "taken" is there of conditional branches alone.
void list_counts_json(const History& history, Range range, Address begin, Address end,
                      const LineSink& sink);

// What a lister gives as one text, each line with its line feed; cut, and said so, at
// `limit_bytes`.
std::string text_of(std::size_t limit_bytes, const std::function<void(const LineSink&)>& lister);

// list_instructions as one text.
std::string instructions_text(const History& history, Symbolizer& symbols, Range range,
                              const ListingOptions& options, std::size_t limit_bytes);

}  // namespace tailtrace
