#include "decoder/history/loops.h"

#include <algorithm>

#include "decoder/history/runs.h"

namespace tailtrace {
namespace {

// What is remembered of a call, and how many calls. Beyond that loops are found a round later, or
// in pieces.
constexpr std::size_t kMaxArrivals = 1024;
constexpr std::size_t kMaxFrames = 1 << 16;

// A straight run of a call.
struct Arrival {
  Address start;
  Address end;  // its last instruction
  std::uint64_t first = 0;
};

struct Frame {
  std::vector<Arrival> arrivals;
  std::vector<Loop> loops;  // outer ones first
};

class LoopFinder {
 public:
  LoopFinder(const History& history, Range range)
      : runs_(history, range.first), range_(range), frames_(1) {}

  std::vector<Loop> find(std::uint64_t min_rounds) {
    HistoryRun run;
    while (runs_.next(run) && run.first <= range_.last) add(run);
    while (!frames_.empty()) close_newest_frame();
    std::sort(done_.begin(), done_.end(), [](const Loop& a, const Loop& b) {
      return a.items.first != b.items.first ? a.items.first < b.items.first
                                            : a.items.last > b.items.last;
    });
    std::vector<Loop> outermost;
    for (const Loop& loop : done_) {
      bool inside = !outermost.empty() && loop.items.last <= outermost.back().items.last;
      bool apart = outermost.empty() || loop.items.first > outermost.back().items.last;
      if (!inside && apart && loop.rounds >= min_rounds) outermost.push_back(loop);
    }
    return outermost;
  }

 private:
  void add(const HistoryRun& run) {
    if (run.step.shown != 0) add_run(run);
    if (!run.step.has_gap) return;
    while (!frames_.empty()) close_newest_frame();
    frames_.emplace_back();
  }

  void add_run(const HistoryRun& run) {
    std::uint64_t last = run.first + run.step.shown - 1;
    if (last < range_.first) return;
    if (last > range_.last) return;
    if (!run.ends_with_branch()) return note_end(run);
    const BranchRecord& record = *run.record;
    std::vector<Arrival>& arrivals = frames_.back().arrivals;
    if (arrivals.size() == kMaxArrivals)
      arrivals.erase(arrivals.begin(), arrivals.begin() + kMaxArrivals / 2);
    arrivals.push_back({run.step.start, record.from, run.first});
    note_exits(run.step.start, record);
    epoch_ = run.step.epoch;
    switch (record.kind) {
      case RecordKind::kConditional:
      case RecordKind::kJump:
      case RecordKind::kIndirectJump:
        if (record.to <= record.from) jump_back(record, last);
        return;
      case RecordKind::kCall:
      case RecordKind::kIndirectCall:
        if (!is_next(record)) open_frame();
        return;
      case RecordKind::kReturn:
        close_newest_frame();
        if (frames_.empty()) frames_.emplace_back();
        return;
      default:
        return;
    }
  }

  // A run of this call may lead out of its loops.
  void note_exits(Address start, const BranchRecord& record) {
    const bool calls = record.kind == RecordKind::kCall || record.kind == RecordKind::kIndirectCall;
    for (Loop& loop : frames_.back().loops) {
      const bool is_inside = loop.head <= start && start <= loop.last;
      if (!is_inside || loop.rounds == 0 || !loop.exit.is_null()) continue;
      if (record.from > loop.last)
        loop.exit = loop.last;
      else if (!calls && (record.to < loop.head || record.to > loop.last))
        loop.exit = record.from;
    }
  }

  // A run that something else than a branch ended, as a stop does, may have led behind a loop.
  void note_end(const HistoryRun& run) {
    if (!run.record->is_async() || run.step.shown != run.record->insns) return;
    for (Loop& loop : frames_.back().loops) {
      const bool is_inside = loop.head <= run.step.start && run.step.start <= loop.last;
      if (is_inside && loop.rounds != 0 && loop.exit.is_null() && run.record->from > loop.last)
        loop.exit = loop.last;
    }
  }

  // A call of the next instruction, which only tells where it is.
  bool is_next(const BranchRecord& record) {
    std::optional<Instruction> insn = runs_.code().at(record.from);
    return insn && insn->next() == record.to;
  }

  void open_frame() {
    if (frames_.size() == kMaxFrames) {
      // The outermost calls are closed; the order of done_ is that of closing.
      for (std::size_t i = 0; i < kMaxFrames / 2; ++i) keep(frames_[i].loops);
      frames_.erase(frames_.begin(), frames_.begin() + kMaxFrames / 2);
    }
    frames_.emplace_back();
  }

  void close_newest_frame() {
    keep(frames_.back().loops);
    frames_.pop_back();
  }

  void keep(std::vector<Loop>& loops) {
    for (const Loop& loop : loops)
      if (loop.rounds > 1) done_.push_back(loop);
    loops.clear();
  }

  void jump_back(const BranchRecord& record, std::uint64_t last) {
    std::vector<Loop>& loops = frames_.back().loops;
    auto known = std::find_if(loops.rbegin(), loops.rend(),
                              [&](const Loop& loop) { return loop.head == record.to; });
    if (known == loops.rend()) {
      begin_loop(record, last);
    } else {
      loops.erase(known.base(), loops.end());
      ++loops.back().rounds;
      loops.back().items.last = last;
      loops.back().back = record.from;
      loops.back().last = std::max(loops.back().last, record.from);
      loops.back().exit = {};
    }
    if (loops.back().rounds != 0) forget_inside(loops.back());
  }

  void begin_loop(const BranchRecord& record, std::uint64_t last) {
    Frame& frame = frames_.back();
    std::optional<std::uint64_t> first = newest_arrival(frame, record.to);
    if (!first || *first < range_.first) {
      keep(frame.loops);
      frame.loops.push_back(new_loop({last + 1, last}, 0, record));
      return;
    }
    while (!frame.loops.empty() && frame.loops.back().items.first >= *first) frame.loops.pop_back();
    frame.loops.push_back(new_loop({*first, last}, 1, record));
  }

  Loop new_loop(Range items, std::uint64_t rounds, const BranchRecord& back) const {
    return {items, rounds, back.to, back.from, back.from, {}, epoch_};
  }

  // What is inside of an outer loop is told with it.
  void forget_inside(const Loop& loop) {
    while (!done_.empty() && done_.back().items.first >= loop.items.first) done_.pop_back();
  }

  // The item of the newest time that an instruction was executed in this call.
  std::optional<std::uint64_t> newest_arrival(const Frame& frame, Address address) {
    for (auto run = frame.arrivals.rbegin(); run != frame.arrivals.rend(); ++run) {
      if (address < run->start || run->end < address) continue;
      std::uint64_t item = run->first;
      Address at = run->start;
      while (at < address) {
        std::optional<Instruction> insn = runs_.code().at(at);
        if (!insn) return std::nullopt;
        at = insn->next();
        ++item;
      }
      if (at == address) return item;
    }
    return std::nullopt;
  }

  HistoryRuns runs_;
  Range range_;
  std::vector<Frame> frames_;
  std::vector<Loop> done_;
  Epoch epoch_;
};

}  // namespace

std::vector<Loop> find_loops(const History& history, Range range, std::uint64_t min_rounds) {
  if (range.size() == 0) return {};
  return LoopFinder(history, range).find(min_rounds);
}

}  // namespace tailtrace
