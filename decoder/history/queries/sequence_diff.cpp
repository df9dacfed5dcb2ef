#include "decoder/history/queries/sequence_diff.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace tailtrace {
namespace {

// Of a diagonal that has left the box: no way leads back into it.
constexpr std::int64_t kNowhere = std::int64_t{-1} << 60;

using Sequence = std::span<const std::uint32_t>;

class Differ {
 public:
  Differ(Sequence a, Sequence b, std::uint64_t limit_steps) : a_(a), b_(b), left_(limit_steps) {}

  std::vector<SequenceChange> find() {
    // Depth first and oldest first, without recursion.
    open_.push_back({0, a_.size(), 0, b_.size()});
    while (!open_.empty()) {
      SequenceChange box = open_.back();
      open_.pop_back();
      cut_ends(box);
      if (box.a_first == box.a_end || box.b_first == box.b_end) {
        put(box);
      } else if (std::optional<Point> middle = middle_of(box)) {
        open_.push_back({middle->a, box.a_end, middle->b, box.b_end});
        open_.push_back({box.a_first, middle->a, box.b_first, middle->b});
      } else {
        put(box);
      }
    }
    return std::move(changes_);
  }

 private:
  struct Point {
    std::size_t a, b;
  };

  void cut_ends(SequenceChange& box) const {
    while (box.a_first < box.a_end && box.b_first < box.b_end && a_[box.a_first] == b_[box.b_first])
      ++box.a_first, ++box.b_first;
    while (box.a_first < box.a_end && box.b_first < box.b_end &&
           a_[box.a_end - 1] == b_[box.b_end - 1])
      --box.a_end, --box.b_end;
  }

  void put(const SequenceChange& box) {
    if (box.a_first == box.a_end && box.b_first == box.b_end) return;
    bool joins = !changes_.empty() && changes_.back().a_end == box.a_first &&
                 changes_.back().b_end == box.b_first;
    if (!joins) {
      changes_.push_back(box);
      return;
    }
    changes_.back().a_end = box.a_end;
    changes_.back().b_end = box.b_end;
  }

  // A point on a shortest way from corner to corner, other than these; nothing when there is none
  // or it would take too long. From both corners the furthest ways of the same cost are extended
  // until they meet. Diagonals are numbered by a - b, seen from each corner; those beside the box
  // lead nowhere.
  std::optional<Point> middle_of(const SequenceChange& box) {
    const auto n = static_cast<std::int64_t>(box.a_end - box.a_first);
    const auto m = static_cast<std::int64_t>(box.b_end - box.b_first);
    const std::int64_t delta = n - m, half = (n + m + 1) / 2;
    auto same = [&](std::int64_t x, std::int64_t y) {
      return a_[box.a_first + static_cast<std::size_t>(x)] ==
             b_[box.b_first + static_cast<std::size_t>(y)];
    };
    auto inside = [&](std::int64_t x, std::int64_t y) { return 0 <= y && x <= n && y <= m; };
    forth_.clear(n, m);
    back_.clear(n, m);
    for (std::int64_t d = 0; d <= half; ++d) {
      const std::int64_t lowest = d <= m ? -d : (d - m) % 2 - m, highest = std::min(d, n);
      const auto steps = static_cast<std::uint64_t>(highest - lowest);
      if (left_ < steps) return std::nullopt;
      left_ -= steps;
      for (std::int64_t k = lowest; k <= highest; k += 2) {
        std::int64_t x = forth_.next(k, d), y = x - k;
        for (; x < n && y < m && x >= 0 && y >= 0 && same(x, y); ++x, ++y) take();
        forth_.at(k) = inside(x, y) ? x : kNowhere;
        std::int64_t other = delta - k;
        if (delta % 2 != 0 && inside(x, y) && other > -d && other < d && x + back_.at(other) >= n)
          return checked(box, x, y);
      }
      for (std::int64_t k = lowest; k <= highest; k += 2) {
        std::int64_t x = back_.next(k, d), y = x - k;
        for (; x < n && y < m && x >= 0 && y >= 0 && same(n - 1 - x, m - 1 - y); ++x, ++y) take();
        back_.at(k) = inside(x, y) ? x : kNowhere;
        std::int64_t other = delta - k;
        if (delta % 2 == 0 && inside(x, y) && other >= -d && other <= d &&
            x + forth_.at(other) >= n)
          return checked(box, n - x, m - y);
      }
    }
    return std::nullopt;
  }

  void take() { left_ -= left_ != 0 ? 1 : 0; }

  static std::optional<Point> checked(const SequenceChange& box, std::int64_t x, std::int64_t y) {
    Point point{box.a_first + static_cast<std::size_t>(x),
                box.b_first + static_cast<std::size_t>(y)};
    bool inside = x >= 0 && y >= 0 && point.a <= box.a_end && point.b <= box.b_end;
    bool corner = (point.a == box.a_first && point.b == box.b_first) ||
                  (point.a == box.a_end && point.b == box.b_end);
    if (!inside || corner) return std::nullopt;
    return point;
  }

  // How far each diagonal was reached; the numbers are those of Myers's paper.
  class Furthest {
   public:
    // Those of a box of n by m, and one more on either side.
    void clear(std::int64_t n, std::int64_t m) {
      values_.assign(static_cast<std::size_t>(n + m + 3), kNowhere);
      origin_ = m + 1;
    }
    std::int64_t& at(std::int64_t k) { return values_[static_cast<std::size_t>(k + origin_)]; }
    std::int64_t next(std::int64_t k, std::int64_t d) {
      if (d == 0) return 0;
      bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
      return down ? at(k + 1) : at(k - 1) + 1;
    }

   private:
    std::vector<std::int64_t> values_;
    std::int64_t origin_ = 0;
  };

  Sequence a_, b_;
  std::uint64_t left_;
  Furthest forth_, back_;
  std::vector<SequenceChange> open_, changes_;
};

// What of a sequence the other one has as well, and where that stands.
struct Shared {
  Shared(Sequence all, Sequence other) {
    const std::unordered_set<std::uint32_t> known(other.begin(), other.end());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (known.contains(all[i])) {
        numbers.push_back(all[i]);
        places.push_back(i);
      }
  }

  std::vector<std::uint32_t> numbers;
  std::vector<std::size_t> places;
};

}  // namespace

// What only one of them has is in no way the same, and would only make the search longer.
std::vector<SequenceChange> diff_sequences(Sequence a, Sequence b, std::uint64_t limit_steps) {
  const Shared ours(a, b), theirs(b, a);
  std::vector<SequenceChange> changes = Differ(ours.numbers, theirs.numbers, limit_steps).find();
  changes.push_back({ours.numbers.size(), 0, theirs.numbers.size(), 0});
  std::vector<SequenceChange> all;
  SequenceChange open;  // behind the last pair of the same
  auto put_up_to = [&](std::size_t at_a, std::size_t at_b) {
    if (open.a_first != at_a || open.b_first != at_b)
      all.push_back({open.a_first, at_a, open.b_first, at_b});
    open = {at_a + 1, 0, at_b + 1, 0};
  };
  std::size_t i = 0, j = 0;
  for (const SequenceChange& change : changes) {
    for (; i < change.a_first; ++i, ++j) put_up_to(ours.places[i], theirs.places[j]);
    i = change.a_end;
    j = change.b_end;
  }
  put_up_to(a.size(), b.size());
  return all;
}

}  // namespace tailtrace
