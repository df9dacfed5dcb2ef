#include "decoder/bts/stack_join.h"

#include <algorithm>

namespace tailtrace::bts {
namespace {

// Where `newer` without its last `added` branches is not older than `older` is long, the common
// part must agree.
bool agrees(std::span<const Branch> older, std::span<const Branch> newer, std::size_t added) {
  std::size_t common = std::min(newer.size() - added, older.size());
  return std::ranges::equal(older.last(common),
                            newer.subspan(newer.size() - added - common, common));
}

}  // namespace

Join join_stacks(std::span<const Branch> older, std::span<const Branch> newer,
                 std::size_t most_added) {
  Join join{newer.size(), false};
  if (older.empty()) return join;
  std::size_t possible = 0;
  for (std::size_t added = newer.size(); added-- > 0;) {
    if (!agrees(older, newer, added)) continue;
    join.added = added;
    if (added <= most_added) ++possible;
  }
  join.exact = possible == 1 && most_added < newer.size();
  return join;
}

}  // namespace tailtrace::bts
