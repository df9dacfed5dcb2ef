#include "decoder/history/merged.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "decoder/history/opened_thread.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// A thread whose records have times that now and then go on, some of them exact.
std::shared_ptr<ThreadSnapshot> timed_run(std::mt19937_64& random, std::uint64_t steps,
                                          std::uint64_t pace) {
  ToyProgram program(random(), 3, 5);
  auto snapshot = program.run(random(), steps, true).snapshot;
  std::uint64_t time = random() % 3 == 0 ? 0 : random() % 50;
  for (BranchRecord& record : snapshot->records) {
    if (random() % pace == 0) time += 1 + random() % 20;
    record.time = time;
    if (random() % 4 == 0) record.flags |= kFlagTimeExact;
  }
  return snapshot;
}

// The same item by item, as it is defined.
std::vector<TimedStretch> stretches_of(const History& history, std::size_t thread) {
  std::vector<TimedStretch> stretches;
  std::vector<std::uint64_t> exact;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    const HistoryItem& item = cursor.item();
    if (stretches.empty() || stretches.back().begin != item.time) {
      stretches.push_back({thread, {item.number, item.number}, item.time, 0, false});
      exact.push_back(0);
    }
    stretches.back().items.last = item.number;
    auto record = history.record(item.record);
    exact.back() = record && (record->flags & kFlagTimeExact) != 0 ? record->time : 0;
  }
  for (std::size_t i = 0; i < stretches.size(); ++i)
    stretches[i].end = exact[i] != 0              ? exact[i]
                       : i + 2 < stretches.size() ? stretches[i + 2].begin
                                                  : 0;
  return stretches;
}

std::vector<TimedStretch> naive(const std::vector<const History*>& threads, std::uint64_t items) {
  std::vector<TimedStretch> all;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    auto more = stretches_of(*threads[i], i);
    all.insert(all.end(), more.begin(), more.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const TimedStretch& a, const TimedStretch& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.thread < b.thread;
  });
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (all[j].thread != all[i].thread && (all[j].end == 0 || all[j].end > all[i].begin))
        all[i].overlaps = true;
  std::uint64_t count = 0;
  for (const TimedStretch& stretch : all) count += stretch.items.size();
  while (!all.empty() && count - all.front().items.size() >= items) {
    count -= all.front().items.size();
    all.erase(all.begin());
  }
  if (count > items && !all.empty()) all.front().items.first += count - items;
  return all;
}

TEST(Merged, AreTheNewestStretchesOfAllThreadsInTheOrderOfTime) {
  std::mt19937_64 random(7);
  bool any_overlap = false, any_order = false;
  for (int round = 0; round < 40; ++round) {
    std::vector<std::unique_ptr<History>> histories;
    std::vector<const History*> threads;
    const std::size_t count = 1 + random() % 5;
    for (std::size_t i = 0; i < count; ++i) {
      histories.push_back(
          std::make_unique<History>(timed_run(random, 20 + random() % 400, 1 + random() % 40)));
      threads.push_back(histories.back().get());
    }
    for (std::uint64_t items :
         {std::uint64_t{1}, 1 + random() % 50, 1 + random() % 500, ~std::uint64_t{0} / 2}) {
      auto found = newest_stretches(threads, items);
      ASSERT_EQ(found, naive(threads, items)) << "round " << round << ", " << items << " items";
      for (const TimedStretch& stretch : found) (stretch.overlaps ? any_overlap : any_order) = true;
    }
  }
  EXPECT_TRUE(any_overlap && any_order);
}

TEST(Merged, AreFoundFromTheNewestOnWithoutCountingAnything) {
  std::mt19937_64 random(8);
  std::vector<std::unique_ptr<History>> counted, uncounted;
  std::vector<const History*> some, others;
  for (int i = 0; i < 3; ++i) {
    auto snapshot = timed_run(random, 300, 10);
    counted.push_back(std::make_unique<History>(snapshot));
    OpenedThread opened = opened_thread({snapshot, {}, {}});
    HistorySettings settings;
    settings.numbers = HistorySettings::Numbers::kFromNewest;
    uncounted.push_back(std::make_unique<History>(opened.frame, opened.source, settings));
    some.push_back(counted.back().get());
    others.push_back(uncounted.back().get());
  }
  for (std::uint64_t items : {10ull, 200ull, 100'000ull}) {
    auto expected = newest_stretches(some, items), found = newest_stretches(others, items);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const History& history = *others[found[i].thread];
      found[i].items = {history.from_oldest(found[i].items.first),
                        history.from_oldest(found[i].items.last)};
      EXPECT_EQ(found[i], expected[i]);
    }
  }
}

TEST(Merged, OfNothingAreNothing) {
  EXPECT_TRUE(newest_stretches({}, 10).empty());
  auto empty = std::make_shared<ThreadSnapshot>();
  empty->code = std::make_shared<CodeImage>();
  History history(empty);
  const History* threads[] = {&history, &history};
  EXPECT_TRUE(newest_stretches(threads, 10).empty());
  EXPECT_TRUE(newest_stretches(threads, 0).empty());
}

}  // namespace
}  // namespace tailtrace
