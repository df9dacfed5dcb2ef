#include "decoder/history/merged.h"

#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <utility>

namespace tailtrace {
namespace {

// A cursor takes some 300 KiB: of so many threads all keep theirs.
constexpr std::size_t kMostAwake = 64;

// The stretches of one thread, the newest first.
class ThreadStretches {
 public:
  ThreadStretches(const History& history, std::size_t thread)
      : history_(history), thread_(thread), last_(history.newest()) {}

  // The next older one; nothing when there is none.
  std::optional<TimedStretch> next() {
    if (!history_.holds(last_)) return std::nullopt;
    if (!cursor_) cursor_.emplace(history_);
    const std::uint64_t time = time_at(last_);
    const std::uint64_t exact = exact_end();
    const std::uint64_t first = first_of(time);
    const TimedStretch stretch{
        thread_, {first, last_}, time, exact != 0 ? exact : newer_[1], false};
    last_ = first - 1;
    newer_ = {time, newer_[0]};
    return stretch;
  }

  // Holds no more memory than it must until it is asked again.
  void rest() { cursor_.reset(); }

 private:
  std::uint64_t time_at(std::uint64_t number) {
    cursor_->seek(number);
    return cursor_->item().time;
  }

  // When the last item ended, if its record says just that. The cursor stands on it.
  std::uint64_t exact_end() {
    const std::optional<BranchRecord> record = history_.record(cursor_->item().record);
    const bool is_exact = record && (record->flags & kFlagTimeExact) != 0;
    return is_exact ? record->time : 0;
  }

  // The oldest item of that time: looked for at ever larger distances, then between the last two.
  std::uint64_t first_of(std::uint64_t time) {
    std::uint64_t good = last_, bad = 0;
    for (std::uint64_t step = 1;; step *= 2) {
      if (last_ < step || !history_.holds(last_ - step)) {
        bad = history_.oldest() - 1;
        break;
      }
      if (time_at(last_ - step) != time) {
        bad = last_ - step;
        break;
      }
      good = last_ - step;
    }
    while (bad + 1 < good) {
      const std::uint64_t middle = bad + (good - bad) / 2;
      (time_at(middle) == time ? good : bad) = middle;
    }
    return good;
  }

  const History& history_;
  std::optional<HistoryCursor> cursor_;
  std::size_t thread_;
  std::uint64_t last_;                    // the newest item of the next stretch
  std::array<std::uint64_t, 2> newer_{};  // times of the two newer ones; 0: not known
};

using Order = std::pair<std::uint64_t, std::size_t>;

Order order_of(const TimedStretch& stretch) { return {stretch.begin, stretch.thread}; }

// Until when the stretches so far may have gone on: of the thread for which that is latest, and of
// all others.
class LatestEnds {
 public:
  void add(const TimedStretch& stretch) {
    const std::uint64_t end = stretch.end == 0 ? ~0ull : stretch.end;
    if (stretch.thread == latest_.thread) {
      latest_.end = std::max(latest_.end, end);
    } else if (end > latest_.end) {
      others_ = std::exchange(latest_, {stretch.thread, end}).end;
    } else {
      others_ = std::max(others_, end);
    }
  }
  std::uint64_t without(std::size_t thread) const {
    return thread == latest_.thread ? others_ : latest_.end;
  }

 private:
  struct Latest {
    std::size_t thread = ~std::size_t{0};
    std::uint64_t end = 0;
  };
  Latest latest_;
  std::uint64_t others_ = 0;
};

// The threads, of which the one with the newest stretch comes first.
class Merge {
 public:
  explicit Merge(std::span<const History* const> threads) {
    threads_.reserve(threads.size());
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads_.emplace_back(*threads[i], i);
      refill(i);
    }
  }

  std::optional<TimedStretch> next() {
    if (heads_.empty()) return std::nullopt;
    TimedStretch stretch = heads_.top();
    heads_.pop();
    refill(stretch.thread);
    return stretch;
  }

  // Of each thread the two that come next: older ones had ended before any that was taken.
  std::vector<TimedStretch> just_before() {
    std::vector<TimedStretch> found;
    for (; !heads_.empty(); heads_.pop()) {
      found.push_back(heads_.top());
      if (auto second = threads_[heads_.top().thread].next()) found.push_back(*second);
    }
    std::ranges::sort(found, {}, order_of);
    return found;
  }

 private:
  struct Older {
    bool operator()(const TimedStretch& a, const TimedStretch& b) const {
      return order_of(a) < order_of(b);
    }
  };
  void refill(std::size_t thread) {
    if (auto stretch = threads_[thread].next()) heads_.push(*stretch);
    if (threads_.size() > kMostAwake) threads_[thread].rest();
  }

  std::vector<ThreadStretches> threads_;
  std::priority_queue<TimedStretch, std::vector<TimedStretch>, Older> heads_;
};

}  // namespace

std::vector<TimedStretch> newest_stretches(std::span<const History* const> threads,
                                           std::uint64_t items) {
  Merge merge(threads);
  std::vector<TimedStretch> taken;
  std::uint64_t count = 0;
  while (count < items) {
    std::optional<TimedStretch> stretch = merge.next();
    if (!stretch) break;
    count += stretch->items.size();
    taken.push_back(*stretch);
  }
  std::ranges::reverse(taken);
  LatestEnds ends;
  for (const TimedStretch& stretch : merge.just_before()) ends.add(stretch);
  for (TimedStretch& stretch : taken) {
    stretch.overlaps = ends.without(stretch.thread) > stretch.begin;
    ends.add(stretch);
  }
  if (count > items) taken.front().items.first += count - items;
  return taken;
}

}  // namespace tailtrace
