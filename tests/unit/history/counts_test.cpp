#include "decoder/history/counts.h"

#include <gtest/gtest.h>

#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// The same, by walking item by item.
std::map<Address, ExecutionCount> counted_one_by_one(const History& history, Range range,
                                                     Address begin, Address end) {
  std::map<Address, ExecutionCount> counts;
  HistoryCursor cursor(history);
  for (cursor.seek(range.first); cursor.valid() && cursor.item().number <= range.last;
       cursor.next()) {
    const HistoryItem& item = cursor.item();
    Address at = item.instruction.address;
    if (item.is_gap || at < begin || at >= end) continue;
    ExecutionCount& count = counts[at];
    ++count.times;
    count.kind = item.instruction.kind;
    if (item.branch != nullptr) ++count.transfers;
  }
  return counts;
}

TEST(Counts, AreThoseOfWalkingItemByItem) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 3000, seed % 2 == 0);
    History history(run.snapshot);
    Range whole{1, history.size()}, part{1 + seed * 37, history.size() - seed * 11};
    Address begin = ToyProgram::kBase, middle = run.executed[seed * 100];
    for (Range range : {whole, part})
      for (auto [from, to] : {std::pair(begin, begin + (1 << 20)), std::pair(middle, middle + 40),
                              std::pair(begin, begin)}) {
        auto counts = count_executions(history, range, from, to);
        auto truth = counted_one_by_one(history, range, from, to);
        ASSERT_EQ(counts.size(), truth.size());
        for (auto& [address, count] : truth) {
          EXPECT_EQ(counts[address].times, count.times) << address.value;
          EXPECT_EQ(counts[address].transfers, count.transfers) << address.value;
          EXPECT_EQ(counts[address].kind, count.kind);
        }
      }
    EXPECT_EQ(count_executions(history, whole, begin, begin + (1 << 20)).empty(), false);
  }
}

TEST(Counts, OfAnEmptyHistoryAreNone) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = std::make_shared<CodeImage>();
  EXPECT_TRUE(count_executions(History(snapshot), {}, {0}, {~0ull}).empty());
}

}  // namespace
}  // namespace tailtrace
