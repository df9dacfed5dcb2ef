// How often instructions were executed in a stretch of a history, for listings of code.
//
// Threading: a pure function.
#pragma once

#include <functional>
#include <map>

#include "decoder/history/range.h"
#include "decoder/history/runs.h"

namespace tailtrace {

struct ExecutionCount {
  std::uint64_t times = 0;
  std::uint64_t transfers = 0;  // of those, how often it led elsewhere than to the next instruction
  InstructionClass kind = InstructionClass::kOther;

  void add(const ExecutionCount& more) {
    times += more.times;
    transfers += more.transfers;
    kind = more.kind;
  }
};

// What is told of each record of the range before it counts. False: what was executed before it
// does not count.
using SeeRecord = std::function<bool(const HistoryRun&)>;

// Calls `see` for the instructions of [begin, end) that were executed among these items, run by
// run: for the same one several times, each with the code's epoch and what it adds.
// REQUIRES: a range of the history.
using SeeExecution = std::function<void(Address, Epoch, const ExecutionCount&)>;
void each_execution(const History& history, Range range, Address begin, Address end,
                    const SeeExecution& see, const SeeRecord& see_record = nullptr);

// Of every instruction of [begin, end) that was executed among these items, by address. Takes time
// in proportion to the records of the range, and to the different runs that touch the addresses.
// REQUIRES: a range of the history.
std::map<Address, ExecutionCount> count_executions(const History& history, Range range,
                                                   Address begin, Address end);

}  // namespace tailtrace
