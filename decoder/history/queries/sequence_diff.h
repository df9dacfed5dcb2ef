// What two sequences of numbers have in common, by the fewest insertions and deletions: E. Myers,
// "An O(ND) Difference Algorithm and Its Variations" (1986), in linear space.
//
// Threading: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tailtrace {

// a[a_first, a_end) stands where the other has b[b_first, b_end); one of them may be empty. What is
// between two changes is the same in both.
struct SequenceChange {
  std::size_t a_first = 0, a_end = 0;
  std::size_t b_first = 0, b_end = 0;

  friend bool operator==(const SequenceChange&, const SequenceChange&) = default;
};

// In order, apart from each other. Stretches so different that finding the fewest changes would
// take more than about `limit_steps` steps are told as one change each.
std::vector<SequenceChange> diff_sequences(std::span<const std::uint32_t> a,
                                           std::span<const std::uint32_t> b,
                                           std::uint64_t limit_steps);

}  // namespace tailtrace
