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

std::optional<std::size_t> branches_added(std::span<const Branch> older,
                                          std::span<const Branch> newer, std::size_t most_new) {
  // With nothing in common a hole of any size is possible.
  if (older.empty() || most_new >= newer.size()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t added = 0; added <= most_new; ++added) {
    if (!agrees(older, newer, added)) continue;
    if (found) return std::nullopt;
    found = added;
  }
  return found;
}

}  // namespace tailtrace::bts
