#include "decoder/history/queries/find.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/history/location_matcher.h"
#include "decoder/history/same_run.h"

namespace tailtrace {
namespace {

// Longer runs are looked at each time; of the others so many are remembered.
constexpr std::uint64_t kMaxRemembered_insns = 1 << 12;
constexpr std::size_t kMaxRemembered = 1 << 16;

// Backwards a history is searched in stretches: the first is short, for the answer may be near.
constexpr std::uint64_t kFirstStretch = 1 << 12;
constexpr std::uint64_t kMaxStretch = 1 << 20;

constexpr RecordKind kEvents[] = {
    RecordKind::kInterrupt,        RecordKind::kException,        RecordKind::kSignal,
    RecordKind::kTransactionAbort, RecordKind::kDiscontinuity,    RecordKind::kMarker,
    RecordKind::kCodeChange,       RecordKind::kTransactionBegin, RecordKind::kTransactionCommit};

class Finder {
 public:
  Finder(const History& history, Symbolizer& symbols, const Wanted& wanted)
      : history_(history), wanted_(wanted) {
    if (wanted.location) matcher_.emplace(*wanted.location, symbols);
  }

  // The items of the stretch that match, oldest first.
  void look(Range range, std::vector<std::uint64_t>& found) {
    if (range.size() == 0) return;
    // What took the flow away before the first item is told by the record before it.
    HistoryRuns runs(history_, range.first - (history_.holds(range.first - 1) ? 1 : 0));
    HistoryRun run;
    const bool to_the_end = range.last == history_.newest();
    while (runs.next_record(run) && (run.first <= range.last || to_the_end)) {
      if (!is_in_time(run)) continue;
      if (is_sort(ItemKind::Sort::kEvent)) {
        add_event(run, range, found);
      } else if (is_sort(ItemKind::Sort::kGap)) {
        if (run.step.has_gap && !matcher_) put(run.first + run.step.shown, range, found);
      } else if (run.step.shown != 0) {
        add_instructions(run, runs.code(), range, found);
      }
    }
  }

 private:
  static void put(std::uint64_t number, Range range, std::vector<std::uint64_t>& found) {
    if (range.first <= number && number <= range.last) found.push_back(number);
  }

  bool is_sort(ItemKind::Sort sort) const { return wanted_.kind && wanted_.kind->sort == sort; }

  bool is_in_time(const HistoryRun& run) const {
    if (wanted_.since == 0 && wanted_.until == ~0ull) return true;
    const std::uint64_t time = run.time_before;
    return time != 0 && wanted_.since <= time && time <= wanted_.until;
  }

  void add_event(const HistoryRun& run, Range range, std::vector<std::uint64_t>& found) {
    if (run.record->kind != wanted_.kind->event || !is_event(*run.record)) return;
    if (matcher_ && !matcher_->holds(run.record->from)) return;
    std::uint64_t number = std::min(run.first + run.step.items(), history_.newest());
    if (found.empty() || found.back() != number) put(number, range, found);
  }

  void add_instructions(const HistoryRun& run, CodeReader& code, Range range,
                        std::vector<std::uint64_t>& found) {
    SameRun same{run.step.start, {}, run.step.shown, run.step.epoch};
    if (run.ends_with_branch()) same.from = run.record->from;
    if (same.shown > kMaxRemembered_insns) {
      each_match(same, code, [&](std::uint64_t i) { put(run.first + i, range, found); });
      return;
    }
    if (known_.size() >= kMaxRemembered) known_.clear();
    Matches& matches = known_[same];
    if (!matches) {
      matches.emplace();
      each_match(same, code,
                 [&](std::uint64_t i) { matches->push_back(static_cast<std::uint16_t>(i)); });
    }
    for (std::uint16_t i : *matches) put(run.first + i, range, found);
  }

  template <class See>
  void each_match(const SameRun& run, CodeReader& code, See see) {
    Address at = run.start;
    for (std::uint64_t i = 0; i < run.shown; ++i) {
      std::optional<Instruction> insn = code.at(at);
      if (!insn) return;
      if (matches(*insn, run.epoch, i + 1 == run.shown && at == run.from)) see(i);
      at = insn->next();
    }
  }

  bool matches(const Instruction& insn, Epoch when, bool transfers) {
    if (wanted_.kind) {
      bool conditional = insn.kind == InstructionClass::kConditional;
      if (is_sort(ItemKind::Sort::kClass) && wanted_.kind->instruction != insn.kind) return false;
      if (is_sort(ItemKind::Sort::kTaken) && !(conditional && transfers)) return false;
      if (is_sort(ItemKind::Sort::kNotTaken) && (!conditional || transfers)) return false;
    }
    if (!matcher_) return true;
    return wanted_.entries ? matcher_->is_entry(insn.address, when)
                           : matcher_->holds(insn.address, when);
  }

  const History& history_;
  const Wanted& wanted_;
  std::optional<LocationMatcher> matcher_;
  // Offsets in a run; nothing before it was looked at.
  using Matches = std::optional<std::vector<std::uint16_t>>;
  RunMap<Matches> known_;
};

}  // namespace

bool is_event(const BranchRecord& record) {
  return std::find(std::begin(kEvents), std::end(kEvents), record.kind) != std::end(kEvents);
}

std::vector<std::string> item_kind_words() {
  std::vector<std::string> words = {"taken", "not-taken", "gap"};
  for (int i = 0; i <= static_cast<int>(InstructionClass::kPtwrite); ++i)
    words.emplace_back(class_name(static_cast<InstructionClass>(i)));
  for (RecordKind kind : kEvents) words.emplace_back(kind_name(kind));
  return words;
}

Result<ItemKind> parse_item_kind(std::string_view word) {
  using Sort = ItemKind::Sort;
  if (word == "taken") return ItemKind{Sort::kTaken, {}, {}};
  if (word == "not-taken") return ItemKind{Sort::kNotTaken, {}, {}};
  if (word == "gap") return ItemKind{Sort::kGap, {}, {}};
  for (RecordKind kind : kEvents)
    if (word == kind_name(kind)) return ItemKind{Sort::kEvent, {}, kind};
  for (int i = 0; i <= static_cast<int>(InstructionClass::kPtwrite); ++i)
    if (auto kind = static_cast<InstructionClass>(i); word == class_name(kind))
      return ItemKind{Sort::kClass, kind, {}};
  return fail(ErrorCode::kUsage, fmt::format("`{}` is no kind of item", word.substr(0, 100)),
              fmt::format("the kinds are {}", fmt::join(item_kind_words(), ", ")));
}

void find_items(const History& history, Symbolizer& symbols, Range range, const Wanted& wanted,
                Order order, const std::function<bool(std::uint64_t)>& see) {
  Finder finder(history, symbols, wanted);
  std::vector<std::uint64_t> found;
  std::uint64_t stretch = kFirstStretch;
  while (range.size() != 0 && !history.is_abandoned()) {
    Range part = range;
    std::uint64_t size = std::min(stretch, range.size());
    if (order == Order::kNewestFirst) {
      part.first = range.last - size + 1;
      range.last = part.first - 1;
    } else {
      part.last = range.first + size - 1;
      range.first = part.last + 1;
    }
    found.clear();
    finder.look(part, found);
    if (history.is_abandoned()) return;
    if (order == Order::kNewestFirst) std::reverse(found.begin(), found.end());
    for (std::uint64_t number : found)
      if (!see(number)) return;
    stretch = std::min(stretch * 4, kMaxStretch);
  }
}

void find_newest_items(const History& history, Symbolizer& symbols, const Wanted& wanted,
                       const std::function<bool(std::uint64_t)>& see) {
  Finder finder(history, symbols, wanted);
  std::vector<std::uint64_t> found;
  std::uint64_t last = history.newest();
  for (std::uint64_t size = kFirstStretch; history.holds(last) && !history.is_abandoned();
       size = std::min(size * 4, kMaxStretch)) {
    Range part{last >= size ? last - size + 1 : 1, last};
    if (!history.holds(part.first)) part.first = history.oldest();
    found.clear();
    finder.look(part, found);
    if (history.is_abandoned()) return;
    for (auto number = found.rbegin(); number != found.rend(); ++number)
      if (!see(*number)) return;
    last = part.first - 1;
  }
}

}  // namespace tailtrace
