#include "plugin/engines/perf/overlap.h"

#include <algorithm>
#include <vector>

namespace tailtrace::perf {

// The prefix function of Knuth, Morris and Pratt over `newer`, run along the end of `older`.
std::size_t longest_overlap(std::span<const BranchRecord> older,
                            std::span<const BranchRecord> newer) {
  std::size_t most = std::min(older.size(), newer.size());
  if (most == 0) return 0;
  std::span<const BranchRecord> pattern = newer.first(most), text = older.last(most);
  std::vector<std::size_t> border(most, 0);
  for (std::size_t i = 1, k = 0; i < most; ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = border[k - 1];
    if (pattern[i] == pattern[k]) ++k;
    border[i] = k;
  }
  std::size_t matched = 0;
  for (const BranchRecord& record : text) {
    if (matched == most) matched = border[matched - 1];
    while (matched > 0 && record != pattern[matched]) matched = border[matched - 1];
    if (record == pattern[matched]) ++matched;
  }
  return matched;
}

}  // namespace tailtrace::perf
