// SameRun: what tells one straight run of instructions from another. Runs that are the same execute
// the same instructions, so that whatever is asked of each instruction is asked once.
//
// Threading: values; a RunMap one thread at a time.
#pragma once

#include <unordered_map>
#include <vector>

#include "decoder/history/runs.h"

namespace tailtrace {

struct SameRun {
  Address start;
  Address from;  // of the branch at its end; 0: none
  std::uint64_t shown = 0;
  Epoch epoch;

  friend bool operator==(const SameRun&, const SameRun&) = default;
};

struct HashSameRun {
  std::size_t operator()(const SameRun& run) const {
    std::uint64_t hash = run.start.value * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ run.from.value ^ (std::uint64_t{run.epoch.value} << 48)) * 0xff51afd7ed558ccdull;
    return hash ^ run.shown;
  }
};

// A value for each different run. A program goes through few of them at a time: those that were
// asked for last are found by a look at one pointer, without asking the map.
template <class Value>
class RunMap {
 public:
  Value& operator[](const SameRun& run) {
    Entry*& last = last_[HashSameRun{}(run) >> (64 - kLastBits)];
    if (last == nullptr || !(last->first == run)) last = &*values_.try_emplace(run).first;
    return last->second;
  }

  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  void clear() {
    values_.clear();
    last_.assign(last_.size(), nullptr);
  }

 private:
  using Values = std::unordered_map<SameRun, Value, HashSameRun>;
  using Entry = typename Values::value_type;
  static constexpr unsigned kLastBits = 13;

  Values values_;
  std::vector<Entry*> last_ = std::vector<Entry*>(std::size_t{1} << kLastBits);
};

}  // namespace tailtrace
