// Parts of a snapshot: what came after a mark, and the newest instructions.
//
// Threading: pure functions.
#pragma once

#include "decoder/history/long_history.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

// Of a history: what is made where only the newest part is asked for comes at once, however much
// there is, and is enough to know whether the whole is long.
enum class Part { kNewest, kAll };
constexpr std::uint64_t kNewestPart_records = kLongHistory + 1;

// A point of a thread's history between two instructions.
struct HistoryMark {
  Position head;                 // the position that the next record got
  std::uint32_t open_insns = 0;  // executed since the record before
  Address pc;                    // the instruction to be executed next

  friend bool operator==(const HistoryMark&, const HistoryMark&) = default;
};

// Where the thread stands at the end of the snapshot. REQUIRES: its closing record.
HistoryMark end_mark(const ThreadSnapshot& snapshot);

// What came after the mark, opened by a synthetic kEnable there. When the records right after the
// mark are overwritten already, all there is: then the first record is no such kEnable.
ThreadSnapshot since(ThreadSnapshot snapshot, const HistoryMark& mark);

// The part behind the newest execution of another program: a debugger knows no code before it.
ThreadSnapshot of_this_program(ThreadSnapshot snapshot);

// The newest records that hold `instructions` at most, but at least the last record.
ThreadSnapshot newest_instructions(ThreadSnapshot snapshot, std::uint64_t instructions);

}  // namespace tailtrace
