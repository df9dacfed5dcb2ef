#include <algorithm>

#include "decoder/history/calls/call_builder.h"

namespace tailtrace {
namespace {

// How many functions must match before a gap is bridged; lowered when nothing more matches.
constexpr int kMostMatches = 5;

// Level changes that hold from a segment on to the newest: added and summed up in logarithmic time
// (a Fenwick tree), since every bridge moves all that follows it.
class LevelShifts {
 public:
  explicit LevelShifts(std::uint32_t size) : sums_(size + 1) {}

  void add_from(std::uint32_t segment, std::int32_t shift) {
    for (std::uint32_t i = segment; i < sums_.size(); i += i & (0 - i)) sums_[i] += shift;
  }
  std::int32_t at(std::uint32_t segment) const {
    std::int32_t sum = 0;
    for (std::uint32_t i = segment; i != 0; i -= i & (0 - i)) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<std::int32_t> sums_;
};

class Bridger {
 public:
  explicit Bridger(CallStacks& stacks) : stacks_(stacks), shifts_(stacks.newest()) {}

  // One gap: false when fewer than `needed` functions match across it.
  bool bridge(std::uint32_t gap, int needed);

  void apply_levels() {
    for (std::uint32_t s = 1; s <= stacks_.newest(); ++s) stacks_.at(s).level += shifts_.at(s);
  }

 private:
  struct Match {
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    int functions = 0;
  };

  Match best_match(std::uint32_t left, std::uint32_t right);
  int matches(std::uint32_t left, std::uint32_t right);
  void connect(std::uint32_t left, std::uint32_t right);
  void connect_one(std::uint32_t left, std::uint32_t right);
  void pass_on_tail_calls(std::uint32_t left, std::uint32_t right);
  std::int32_t level(std::uint32_t s) { return stacks_.at(s).level + shifts_.at(s); }

  CallStacks& stacks_;
  LevelShifts shifts_;
};

// Functions that agree from both on outwards; 0 when one does not before either stack ends.
int Bridger::matches(std::uint32_t left, std::uint32_t right) {
  int count = 0;
  while (left != 0 && right != 0) {
    if (!stacks_.budget().take() || stacks_.switched(left, stacks_.at(right).function)) return 0;
    ++count;
    left = stacks_.returns_to(left);
    right = stacks_.returns_to(right);
  }
  return count;
}

Bridger::Match Bridger::best_match(std::uint32_t left, std::uint32_t right) {
  Match best;
  for (std::uint32_t l = left; l != 0; l = stacks_.returns_to(l))
    for (std::uint32_t r = right; r != 0; r = stacks_.returns_to(r)) {
      if (stacks_.budget().spent()) return best;
      int count = matches(l, r);
      if (count > best.functions) best = {l, r, count};
    }
  return best;
}

bool Bridger::bridge(std::uint32_t gap, int needed) {
  std::uint32_t left = gap - 1, right = gap + 1, newest = stacks_.newest();
  // Of several gaps in a row the first stands for all; the edges have nothing to connect.
  if (left == 0 || stacks_.at(left).is_gap()) return true;
  while (right <= newest && stacks_.at(right).is_gap()) ++right;
  if (right > newest) return true;
  Match best = best_match(left, right);
  if (best.functions < needed) return false;
  shifts_.add_from(right, level(best.left) - level(best.right));
  connect(best.left, best.right);
  return true;
}

void Bridger::connect(std::uint32_t left, std::uint32_t right) {
  while (left != 0 && right != 0 && stacks_.budget().take()) {
    std::uint32_t outer_left = stacks_.returns_to(left), outer_right = stacks_.returns_to(right);
    connect_one(left, right);
    left = outer_left;
    right = outer_right;
  }
}

// Both are parts of one call from now on, and share what is known of its callers.
void Bridger::connect_one(std::uint32_t left, std::uint32_t right) {
  KeptSegment& l = stacks_.at(left);
  KeptSegment& r = stacks_.at(right);
  if (left == right || l.later != 0 || r.earlier != 0) return;
  l.later = right;
  r.earlier = left;
  if (std::int32_t shift = level(left) - level(right); shift != 0) shifts_.add_from(right, shift);
  if (l.caller == 0) {
    if (r.caller != 0) stacks_.set_caller(left, r.caller, r.tail_called);
  } else if (r.caller == 0) {
    stacks_.set_caller(right, l.caller, l.tail_called);
  } else if (l.tail_called) {
    pass_on_tail_calls(left, right);
  }
}

// The left side knows of tail calls that led here, the right side cannot: they go between it and
// its caller.
void Bridger::pass_on_tail_calls(std::uint32_t left, std::uint32_t right) {
  const std::uint32_t caller = stacks_.at(right).caller;
  const bool tail_called = stacks_.at(right).tail_called;
  std::uint32_t outer = stacks_.at(left).caller;
  stacks_.set_caller(right, outer, true);
  while (outer != 0 && stacks_.budget().take()) {
    if (stacks_.at(outer).caller == 0) {
      stacks_.set_caller(outer, caller, tail_called);
      return;
    }
    if (!stacks_.at(outer).tail_called) return;
    outer = stacks_.at(outer).caller;
  }
}

}  // namespace

void bridge_gaps(CallStacks& stacks, const std::vector<std::uint32_t>& gaps) {
  Bridger bridger(stacks);
  std::vector<std::uint32_t> open = gaps;
  for (int needed = kMostMatches; needed > 0 && !open.empty(); --needed) {
    // A bridge makes stacks longer, so that gaps that did not match before may match now.
    std::size_t before;
    do {
      before = open.size();
      std::erase_if(open, [&](std::uint32_t gap) { return bridger.bridge(gap, needed); });
    } while (open.size() != before && !open.empty());
  }
  bridger.apply_levels();
}

}  // namespace tailtrace
