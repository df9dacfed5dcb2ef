#include "tests/guest/shown.h"

#include <algorithm>

namespace tailtrace {

Shown show(const ThreadSnapshot& snapshot) {
  History history(std::make_shared<ThreadSnapshot>(snapshot));
  Shown shown;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    if (cursor.item().is_gap) {
      shown.breaks.push_back(shown.executed.size());
      shown.reasons.push_back(cursor.item().gap.reason);
    } else {
      shown.executed.push_back(cursor.item().instruction.address);
    }
  }
  return shown;
}

void expect_stretches(const Shown& shown, const std::vector<Address>& truth) {
  auto from = truth.begin();
  std::size_t begin = 0;
  std::vector<std::size_t> ends = shown.breaks;
  ends.push_back(shown.executed.size());
  for (std::size_t end : ends) {
    auto first = shown.executed.begin() + static_cast<std::ptrdiff_t>(begin);
    auto last = shown.executed.begin() + static_cast<std::ptrdiff_t>(end);
    from = std::search(from, truth.end(), first, last);
    ASSERT_NE(from, truth.end() + (first == last ? 1 : 0)) << "instructions " << begin << " on";
    if (first != last) from += last - first;
    begin = end;
  }
  std::printf("    %zu instructions in %zu stretches, all exact\n", shown.executed.size(),
              ends.size());
}

}  // namespace tailtrace
