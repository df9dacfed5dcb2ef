#include "decoder/export/code_runs.h"

#include <algorithm>

#include "decoder/history/same_run.h"

namespace tailtrace {
namespace {

// The run as a stretch of code, without its first `skip` instructions; nothing when the code is not
// known after all.
std::optional<CodeRun> stretch_of(const SameRun& run, std::uint64_t skip, CodeReader& code) {
  CodeRun part;
  part.epoch = run.epoch;
  code.set_epoch(run.epoch);
  Address at = run.start;
  for (std::uint64_t i = 0; i < run.shown; ++i) {
    std::optional<Instruction> insn = code.at(at);
    if (!insn) return std::nullopt;
    if (i == skip) part.first = at;
    part.last = at;
    part.end = insn->next();
    at = part.end;
  }
  return part;
}

// Runs, each counted by where it begins in itself: only those at the range's beginning are cut.
struct Walked {
  RunMap<std::uint64_t> whole;
  std::vector<std::pair<SameRun, std::uint64_t>> cut;  // and how many instructions to skip
};

void note(const HistoryRun& run, Range range, Walked& walked) {
  SameRun same{run.step.start, {}, run.step.shown, run.step.epoch};
  const std::uint64_t last = run.first + run.step.shown - 1;
  if (last > range.last) same.shown -= last - range.last;
  if (run.first < range.first)
    walked.cut.emplace_back(same, range.first - run.first);
  else
    ++walked.whole[same];
}

}  // namespace

void add_code_runs(const History& history, Range range, CodeRuns& all) {
  if (range.size() == 0) return;
  Walked walked;
  HistoryRuns walk(history, range.first);
  for (HistoryRun run; walk.next(run) && run.first <= range.last;) {
    const std::uint64_t behind = run.first + run.step.shown;
    if (run.step.shown == 0 || behind <= range.first) continue;
    note(run, range, walked);
    if (!run.ends_with_branch() || behind - 1 > range.last || run.record->to.is_null()) continue;
    BranchCount& branch = all.branches[{run.record->from, run.record->to, run.step.epoch}];
    ++branch.times;
    if ((run.record->flags & kFlagMispredicted) != 0) ++branch.mispredicted;
  }
  CodeReader code(*history.frame().code);
  for (const auto& [run, times] : walked.whole)
    if (std::optional<CodeRun> part = stretch_of(run, 0, code)) all.runs[*part] += times;
  for (const auto& [run, skip] : walked.cut)
    if (std::optional<CodeRun> part = stretch_of(run, skip, code)) ++all.runs[*part];
}

void each_block(const CodeRun& run, CodeReader& code,
                const std::function<void(Address begin, Address end)>& see) {
  Address begin = run.first;
  code.set_epoch(run.epoch);
  for (Address at = run.first; at <= run.last;) {
    std::optional<Instruction> insn = code.at(at);
    if (!insn) return;
    at = insn->next();
    if (!insn->is_branch() && at <= run.last) continue;
    see(begin, at);
    begin = at;
  }
}

}  // namespace tailtrace
