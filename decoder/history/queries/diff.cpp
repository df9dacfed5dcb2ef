#include "decoder/history/queries/diff.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "decoder/history/calls/calls.h"
#include "decoder/history/location.h"
#include "decoder/history/queries/sequence_diff.h"

namespace tailtrace {
namespace {

// About ten seconds.
constexpr std::uint64_t kMaxDiffSteps = 1ull << 31;
// The newest calls are compared.
constexpr std::uint64_t kMaxCalls = CallHistory::kMaxSegments - 1;

std::string_view module_name(const CallSegment& segment) {
  return segment.function == nullptr ? "" : base_name(segment.function->module);
}

std::set<std::string, std::less<>> modules_of(const CallHistory& calls) {
  std::set<std::string, std::less<>> names;
  for (std::uint64_t n = 1; n <= calls.size(); ++n)
    if (const auto name = module_name(calls.at(n)); !names.contains(name)) names.emplace(name);
  return names;
}

// Names of calls as numbers, the same for both sides. Modules count where both have them: another
// build, or version of a library, may be a file of another name.
class Names {
 public:
  Names(const CallHistory& here, const CallHistory& there) {
    std::ranges::set_intersection(modules_of(here), modules_of(there),
                                  std::inserter(modules_, modules_.end()));
  }

  std::uint32_t of(const CallSegment& segment) {
    std::pair<std::string, std::string> name("(gap)", "");
    if (segment.function != nullptr)
      name = {segment.function->name, std::string(known_module(segment))};
    return numbers_.try_emplace(std::move(name), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::string_view known_module(const CallSegment& segment) const {
    const std::string_view name = module_name(segment);
    return modules_.contains(name) ? name : "";
  }

  std::set<std::string, std::less<>> modules_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> numbers_;
};

std::uint64_t offset_of(const CallSegment& call, const HistoryItem& item) {
  Address origin = call.function->entry.is_null() ? call.function->begin : call.function->entry;
  return item.instruction.address - origin;
}

// One side's calls, and what was executed in them.
class Side {
 public:
  Side(const DiffSide& side, CallHistory calls, Names& names)
      : side_(side), calls_(std::move(calls)), cursor_(side.history) {
    for (std::uint64_t n = 1; n <= calls_.size(); ++n) {
      CallSegment segment = calls_.at(n);
      if (!side.module.empty() &&
          (segment.function == nullptr || !is_module(segment.function->module, side.module)))
        continue;
      numbers_.push_back(n);
      tokens_.push_back(names.of(segment));
    }
  }

  const std::vector<std::uint32_t>& tokens() const { return tokens_; }
  CallSegment call(std::size_t i) const { return calls_.at(numbers_[i]); }

  // False: nobody waits for what comes of it.
  bool come_to(std::size_t i) const {
    side_.history.come_to(call(i).items.first);
    return !side_.history.is_abandoned();
  }

  // The call may have begun before what is compared.
  bool is_cut(std::size_t i) const {
    if (numbers_[i] != 1) return false;
    return side_.items.first > 1 || !side_.history.complete();
  }

  // A recording that a debugger began at a breakpoint has no more of the call.
  bool begins_inside(std::size_t i) {
    const CallSegment first = call(i);
    if (numbers_[i] != 1 || first.function == nullptr) return false;
    return offset_of(first, item(first.items.first)) != 0;
  }

  Range items(std::size_t first, std::size_t end) const {
    if (first == end) return {};
    return {call(first).items.first, call(end - 1).items.last};
  }

  std::string name(std::size_t i) const {
    CallSegment segment = call(i);
    return segment.function == nullptr ? std::string() : segment.function->name;
  }

  const HistoryItem& item(std::uint64_t number) {
    cursor_.seek(number);
    return cursor_.item();
  }

  std::optional<SourceLine> line(std::uint64_t number) {
    const HistoryItem& there = item(number);
    return side_.symbols.line_at(there.instruction.address, there.epoch);
  }

  // The innermost, were it inlined.
  std::string function_of(std::uint64_t number) {
    const HistoryItem& there = item(number);
    const Address address = there.instruction.address;
    const auto inlined = side_.symbols.inlined_at(address, there.epoch);
    return inlined.empty() ? side_.symbols.function_in(address, there.epoch).name
                           : inlined.front().name;
  }

 private:
  const DiffSide& side_;
  CallHistory calls_;
  HistoryCursor cursor_;
  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint32_t> tokens_;
};

// Compares what was executed in two calls of one function.
class PathDiffer {
 public:
  PathDiffer(Side& here, Side& there) : here_(here), there_(there) {}

  std::optional<Divergence> find(const CallSegment& a, const CallSegment& b) {
    a_ = a;
    b_ = b;
    std::uint64_t count = std::min(a.items.size(), b.items.size()), same = 0;
    while (same < count && is_same(same)) ++same;
    if (same == count && a.items.size() == b.items.size()) return std::nullopt;
    if (same == 0 || !is_fork(same - 1)) return find_by_lines();
    return divergence(a.items.first + same, b.items.first + same);
  }

 private:
  bool is_same(std::uint64_t i) {
    const HistoryItem& ours = here_.item(a_.items.first + i);
    const HistoryItem& theirs = there_.item(b_.items.first + i);
    return offset_of(a_, ours) == offset_of(b_, theirs) &&
           ours.instruction.size_bytes == theirs.instruction.size_bytes &&
           ours.instruction.kind == theirs.instruction.kind;
  }

  // The same code goes on in another way behind a branch with another outcome, and where one of the
  // calls ends. Otherwise it is not the same code.
  bool is_fork(std::uint64_t i) {
    const HistoryItem& ours = here_.item(a_.items.first + i);
    const HistoryItem& theirs = there_.item(b_.items.first + i);
    if (ours.instruction.kind == InstructionClass::kConditional)
      return (ours.branch != nullptr) != (theirs.branch != nullptr);
    if (!ours.instruction.target.is_null()) return false;
    return ours.instruction.is_branch() || i + 1 == std::min(a_.items.size(), b_.items.size());
  }

  Divergence divergence(std::uint64_t at_here, std::uint64_t at_there) const {
    Divergence found;
    found.what = Divergence::What::kPath;
    found.function = a_.function->name;
    if (at_here <= a_.items.last) found.here = {at_here, a_.items.last};
    if (at_there <= b_.items.last) found.there = {at_there, b_.items.last};
    if (at_here > a_.items.first) found.fork_here = at_here - 1;
    if (at_there > b_.items.first) found.fork_there = at_there - 1;
    return found;
  }

  // The code is not the same: another build.
  std::optional<Divergence> find_by_lines() {
    std::uint64_t ours = a_.items.first, theirs = b_.items.first;
    std::optional<SourceLine> before_here, before_there;
    for (;;) {
      auto here = next_line(here_, a_, ours, before_here);
      auto there = next_line(there_, b_, theirs, before_there);
      if (!here && !there) return std::nullopt;
      if (!here || !there || !is_same_line(*here, ours, *there, theirs))
        return divergence(ours, theirs);
    }
  }

  // Functions move when something is written above them: the first lines that are compared of one
  // tell how far it has moved.
  bool is_same_line(const SourceLine& here, std::uint64_t ours, const SourceLine& there,
                    std::uint64_t theirs) {
    const std::string_view file = base_name(here.file);
    std::string function = here_.function_of(ours);
    if (file != base_name(there.file) || function != there_.function_of(theirs)) return false;
    const std::int64_t moved = std::int64_t{there.line} - std::int64_t{here.line};
    return moved_lines_.try_emplace({std::string(file), std::move(function)}, moved)
               .first->second == moved;
  }

  // Moves on to where another line begins.
  static std::optional<SourceLine> next_line(Side& side, const CallSegment& call,
                                             std::uint64_t& item,
                                             std::optional<SourceLine>& before) {
    for (; item <= call.items.last; ++item) {
      std::optional<SourceLine> line = side.line(item);
      if (!line || (before && before->line == line->line && before->file == line->file)) continue;
      before = line;
      return line;
    }
    return std::nullopt;
  }

  Side& here_;
  Side& there_;
  CallSegment a_, b_;
  std::map<std::pair<std::string, std::string>, std::int64_t> moved_lines_;  // by file, function
};

class HistoryDiffer {
 public:
  HistoryDiffer(Side& here, Side& there, std::size_t limit)
      : here_(here), there_(there), paths_(here, there), limit_(limit) {}

  HistoryDiff find() {
    std::span<const std::uint32_t> ours = here_.tokens(), theirs = there_.tokens();
    // Where one of them may begin later, only their ends can stand for each other.
    if (begins_late(here_) || begins_late(there_))
      while (!ours.empty() && !theirs.empty() && ours.back() == theirs.back()) {
        ours = ours.first(ours.size() - 1);
        theirs = theirs.first(theirs.size() - 1);
      }
    std::size_t a = 0, b = 0;
    for (const SequenceChange& change : diff_sequences(ours, theirs, kMaxDiffSteps)) {
      compare(a, b, change.a_first - a);
      add_calls(change);
      a = change.a_end;
      b = change.b_end;
      if (diff_.more) return std::move(diff_);
    }
    compare(a, b, here_.tokens().size() - a);
    return std::move(diff_);
  }

 private:
  void add(Divergence divergence) {
    diff_.more = diff_.divergences.size() == limit_;
    if (!diff_.more) diff_.divergences.push_back(std::move(divergence));
  }

  void compare(std::size_t a, std::size_t b, std::size_t count) {
    for (std::size_t i = 0; i < count && !diff_.more && here_.come_to(a + i); ++i) {
      CallSegment ours = here_.call(a + i), theirs = there_.call(b + i);
      // Of a call that was cut only a part can be compared.
      bool whole = ours.function != nullptr && !here_.is_cut(a + i) && !there_.is_cut(b + i) &&
                   here_.begins_inside(a + i) == there_.begins_inside(b + i);
      std::optional<Divergence> found;
      if (whole) found = paths_.find(ours, theirs);
      if (found)
        add(std::move(*found));
      else
        ++diff_.same_calls;
    }
  }

  bool begins_late(Side& side) {
    return !side.tokens().empty() &&
           (side.is_cut(0) || side.begins_inside(0) || begin_differently());
  }

  // All of a program begins where its last run did: one was begun later, where a function begins.
  bool begin_differently() const {
    std::span<const std::uint32_t> ours = here_.tokens(), theirs = there_.tokens();
    return !ours.empty() && !theirs.empty() && ours.front() != theirs.front();
  }

  // Where one of them only begins later, nothing is different.
  bool is_older_part(const SequenceChange& change) {
    if (change.a_first != 0 || change.b_first != 0) return false;
    if (change.a_first == change.a_end) return begins_late(here_);
    return change.b_first == change.b_end && begins_late(there_);
  }

  void add_calls(const SequenceChange& change) {
    if (diff_.more || is_older_part(change)) return;
    Divergence found;
    bool ours = change.a_first != change.a_end;
    found.function = ours ? here_.name(change.a_first) : there_.name(change.b_first);
    found.here = here_.items(change.a_first, change.a_end);
    found.there = there_.items(change.b_first, change.b_end);
    add(std::move(found));
  }

  Side& here_;
  Side& there_;
  PathDiffer paths_;
  std::size_t limit_;
  HistoryDiff diff_;
};

Result<CallHistory> calls_of(const DiffSide& side) {
  Range range = side.items;
  if (range.size() > kMaxCalls) range.first = range.last - kMaxCalls + 1;
  return CallHistory::make(side.history, side.symbols, range);
}

}  // namespace

Result<HistoryDiff> diff_histories(const DiffSide& here, const DiffSide& there, std::size_t limit) {
  Result<CallHistory> ours = calls_of(here);
  if (!ours) return fail(std::move(ours.error()));
  Result<CallHistory> theirs = calls_of(there);
  if (!theirs) return fail(std::move(theirs.error()));
  Names names(*ours, *theirs);
  Side a(here, std::move(*ours), names), b(there, std::move(*theirs), names);
  if (!here.module.empty() && a.tokens().empty() && b.tokens().empty())
    return fail(ErrorCode::kUsage, "cannot compare code of " + here.module,
                "neither recording executed any", "the name of an executed file, or leave it out");
  HistoryDiff diff = HistoryDiffer(a, b, limit).find();
  if (here.history.is_abandoned())
    return fail(ErrorCode::kNegative, "the comparison was given up", "it was interrupted",
                "compare fewer of the newest instructions");
  diff.calls_here = a.tokens().size();
  diff.calls_there = b.tokens().size();
  return diff;
}

}  // namespace tailtrace
