// Walking a history from Python: item by item in batches, or as columns.
//
// Threading: each walker has a cursor of its own; the work is done without the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <vector>

#include "python/core/item.h"
#include "python/core/thread_history.h"

namespace tailtrace::python {

// Positions first, first + step, ... `count` of them, as a slice of a history has them.
struct Stretch {
  static constexpr std::uint64_t kToTheEnd = ~0ull;  // as many as there are

  std::int64_t first = -1;
  std::uint64_t count = 0;
  std::int64_t step = 1;

  // The number that History::kNewest and its like have.
  std::uint64_t number(std::uint64_t i) const {
    return History::kNewest + 1 + static_cast<std::uint64_t>(first) +
           i * static_cast<std::uint64_t>(step);
  }
};

// Hands out the items of a stretch, one by one.
class Walker {
 public:
  Walker(pybind11::object history, Stretch stretch);

  // The next item's object; null behind the last one.
  pybind11::object next();
  std::uint64_t left() const { return stretch_.count - done_; }
  // How many are left, as far as that is known without looking; else 0.
  std::uint64_t left_hint() const { return stretch_.count == Stretch::kToTheEnd ? 0 : left(); }

 private:
  // Large enough to make its overhead nothing, small enough to stay in the processor's cache.
  static constexpr std::size_t kBatch_items = 512;
  void fill();

  pybind11::object object_;  // keeps what the cursor walks
  HistoryCursor cursor_;
  Stretch stretch_;
  std::uint64_t done_ = 0;
  std::vector<Item> batch_;
  std::size_t at_ = 0;
  bool busy_ = false;  // filling, without the interpreter's lock
};

void bind_walk(pybind11::module_& module);

}  // namespace tailtrace::python
