#include "decoder/history/counts.h"

#include <algorithm>

#include "decoder/history/same_run.h"

namespace tailtrace {
namespace {

// The part of a run that lies in the range, as a run.
SameRun cut(const HistoryRun& run, CodeReader& code, Range range) {
  SameRun part{run.step.start, {}, run.step.shown, run.step.epoch};
  std::uint64_t first = run.first, last = run.first + run.step.shown - 1;
  if (run.ends_with_branch() && last <= range.last) part.from = run.record->from;
  if (last > range.last) part.shown -= last - range.last;
  for (; first < range.first && part.shown != 0; ++first, --part.shown) {
    std::optional<Instruction> insn = code.at(part.start);
    if (!insn) return {};
    part.start = insn->next();
  }
  return part;
}

void each_of_run(const SameRun& run, std::uint64_t times, CodeReader& code, Address begin,
                 Address end, const SeeExecution& see) {
  code.set_epoch(run.epoch);
  Address at = run.start;
  for (std::uint64_t i = 0; i < run.shown; ++i) {
    std::optional<Instruction> insn = code.at(at);
    if (!insn) return;
    const bool transfers = at == run.from && i + 1 == run.shown;
    if (begin <= at && at < end) see(at, run.epoch, {times, transfers ? times : 0, insn->kind});
    at = insn->next();
  }
}

}  // namespace

void each_execution(const History& history, Range range, Address begin, Address end,
                    const SeeExecution& see, const SeeRecord& see_record) {
  if (range.size() == 0) return;
  RunMap<std::uint64_t> runs;
  HistoryRuns walk(history, range.first);
  HistoryRun run;
  while (walk.next_record(run) && run.first <= range.last) {
    if (see_record && !see_record(run)) runs.clear();
    if (run.step.shown == 0 || run.first + run.step.shown <= range.first) continue;
    // A run goes on from lower to higher addresses.
    if (run.step.start >= end) continue;
    if (run.ends_with_branch() && run.record->from < begin) continue;
    ++runs[cut(run, walk.code(), range)];
  }
  CodeReader code(*history.frame().code);
  for (const auto& [same, times] : runs) each_of_run(same, times, code, begin, end, see);
}

std::map<Address, ExecutionCount> count_executions(const History& history, Range range,
                                                   Address begin, Address end) {
  std::map<Address, ExecutionCount> counts;
  each_execution(history, range, begin, end,
                 [&](Address at, Epoch, const ExecutionCount& count) { counts[at].add(count); });
  return counts;
}

}  // namespace tailtrace
