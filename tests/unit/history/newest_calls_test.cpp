#include "decoder/history/calls/newest_calls.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decoder/history/calls/call_listing.h"
#include "decoder/history/counts.h"
#include "decoder/history/item_range.h"
#include "decoder/history/queries/find.h"
#include "decoder/history/queries/stats.h"
#include "decoder/history/queries/why.h"
#include "decoder/history/record_slices.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kItems = 200'000;

std::shared_ptr<const ThreadSnapshot> snapshot() {
  return ToyProgram(3, 4, 5).run(3, kItems, false).snapshot;
}

History uncounted(const std::shared_ptr<const ThreadSnapshot>& snapshot, std::stop_token stop = {},
                  std::size_t slice_records = RecordSlices::kSlice_records) {
  HistorySettings settings;
  settings.stop = std::move(stop);
  settings.numbers = HistorySettings::Numbers::kFromNewest;
  return History(
      *snapshot,
      std::make_shared<RecordSlices>(snapshot, snapshot->records, *snapshot, slice_records),
      settings);
}

TEST(NewestCalls, AreTheLastOnesOfAll) {
  auto recorded = snapshot();
  ToySymbols symbols;
  History counted(recorded), near = uncounted(recorded);
  Result<CallHistory> all = CallHistory::make(counted, symbols, {1, counted.size()});
  Result<CallHistory> newest =
      newest_calls(near, symbols, [](std::uint64_t segments) { return segments > 50; });
  ASSERT_TRUE(all && newest);
  ASSERT_GT(newest->size(), 50u);
  ASSERT_LT(newest->size(), all->size());
  for (std::uint64_t back = 0; back < 50; ++back) {
    CallSegment one = newest->at(newest->size() - back), other = all->at(all->size() - back);
    EXPECT_EQ(one.function->name, other.function->name);
    EXPECT_EQ(near.from_newest(one.items.first), counted.from_newest(other.items.first));
    EXPECT_EQ(near.from_newest(one.items.last), counted.from_newest(other.items.last));
  }
}

TEST(NewestCalls, AreAllWhereThereAreNotEnough) {
  auto recorded = snapshot();
  ToySymbols symbols;
  History counted(recorded), near = uncounted(recorded);
  Result<CallHistory> all = CallHistory::make(counted, symbols, {1, counted.size()});
  Result<CallHistory> newest = newest_calls(near, symbols, [](std::uint64_t) { return false; });
  ASSERT_TRUE(all && newest);
  EXPECT_EQ(newest->size(), all->size());
}

std::uint64_t count_executed(const History& history) {
  std::uint64_t times = 0;
  each_execution(history, {history.oldest(), history.newest()}, {0}, {~0ull},
                 [&](Address, Epoch, const ExecutionCount& count) { times += count.times; });
  return times;
}

std::uint64_t count_records(const History& history) {
  std::uint64_t count = 0;
  history.each_record([&](const BranchRecord&) { ++count; });
  return count;
}

TEST(History, ThatIsAbandonedHasNoCallsAndIsNotReadToItsEnd) {
  ToySymbols symbols;
  std::stop_source stop;
  History history = uncounted(snapshot(), stop.get_token(), 256);
  auto calls = [&] { return newest_calls(history, symbols, [](std::uint64_t) { return true; }); };
  auto finds = [&] {
    bool any = false;
    find_newest_items(history, symbols, {}, [&](std::uint64_t) { return !(any = true); });
    return any;
  };
  EXPECT_TRUE(calls());
  EXPECT_TRUE(finds());
  EXPECT_EQ(count_executed(history), history.instructions());
  EXPECT_EQ(count_records(history), history.record_count());
  stop.request_stop();
  EXPECT_FALSE(calls());
  EXPECT_FALSE(finds());
  EXPECT_LT(count_executed(history), history.instructions() / 10);
  EXPECT_EQ(count_records(history), 0u);
  EXPECT_FALSE(find_reasons(history, symbols, history.newest(), 10));
}

// Told to end at the fifth place that whoever walks it comes to.
struct Interrupted {
  std::stop_source stop;
  std::vector<std::uint64_t> walked;
  History history;

  explicit Interrupted(const std::shared_ptr<const ThreadSnapshot>& recorded)
      : history(*recorded,
                std::make_shared<RecordSlices>(recorded, recorded->records, *recorded, 256),
                settings()) {}

  HistorySettings settings() {
    HistorySettings settings;
    settings.stop = stop.get_token();
    settings.walked = [this](const History&, std::uint64_t number) {
      walked.push_back(number);
      if (walked.size() == 5) stop.request_stop();
    };
    return settings;
  }
};

TEST(History, ThatIsAbandonedOnTheWayIsCountedUpToThere) {
  auto recorded = snapshot();
  ToySymbols symbols;
  Interrupted part(recorded);
  const HistoryStats found = make_stats(part.history, symbols, {1, part.history.size()});
  ASSERT_GT(found.instructions, part.walked.back());
  ASSERT_LT(found.instructions, part.history.size() / 10);
  EXPECT_TRUE(std::is_sorted(part.walked.begin(), part.walked.end()));
  const HistoryStats same = make_stats(History(recorded), symbols, {1, found.instructions});
  EXPECT_EQ(found.instructions, same.instructions);
  EXPECT_EQ(found.taken, same.taken);
  EXPECT_EQ(found.branches, same.branches);
  EXPECT_EQ(found.last_time, same.last_time);
}

TEST(History, ThatIsAbandonedOnTheWayIsSearchedDownToThere) {
  auto recorded = snapshot();
  ToySymbols symbols;
  Interrupted part(recorded);
  std::vector<std::uint64_t> found;
  auto see = [&](std::uint64_t number) {
    found.push_back(number);
    return true;
  };
  const Range all{1, part.history.size()};
  find_items(part.history, symbols, all, {}, Order::kNewestFirst, see);
  ASSERT_GT(found.size(), 0u);
  ASSERT_LT(found.size(), part.history.size() / 2);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], part.history.newest() - i);
}

TEST(CallListing, CountsEverythingFromTheNewestWhenAskedTo) {
  auto recorded = snapshot();
  ToySymbols symbols;
  History counted(recorded), near = uncounted(recorded);
  Result<CallHistory> all = CallHistory::make(counted, symbols, {1, counted.size()});
  Result<CallHistory> same = CallHistory::make(near, symbols, {near.oldest(), near.newest()});
  ASSERT_TRUE(all && same);
  auto lines = [&](const History& history, const CallHistory& calls, JsonNumbers numbers) {
    std::vector<nlohmann::json> found;
    list_calls_json(
        history, calls, symbols, {calls.size() - 99, calls.size()},
        [&](std::string_view line) {
          found.push_back(nlohmann::json::parse(line));
          return true;
        },
        numbers);
    return found;
  };
  std::vector<nlohmann::json> from_newest = lines(near, *same, JsonNumbers::kFromNewest);
  std::vector<nlohmann::json> both = lines(counted, *all, JsonNumbers::kBoth);
  ASSERT_EQ(both.size(), from_newest.size());
  for (std::size_t i = 0; i < both.size(); ++i) {
    nlohmann::json& one = both[i];
    for (const char* item : {"first", "last"})
      one[item] = one[item].get<std::int64_t>() - static_cast<std::int64_t>(counted.size()) - 1;
    for (const char* call : {"caller", "earlier", "later"})
      if (one.contains(call))
        one[call] = one[call].get<std::int64_t>() - static_cast<std::int64_t>(all->size()) - 1;
    one.erase("number");
    EXPECT_EQ(one, from_newest[i]);
  }
}

TEST(ItemRange, IsTheSameWhereverNumbersBegin) {
  auto recorded = snapshot();
  History counted(recorded);
  for (const char* text :
       {"", "-", "-5", "-20,-11", "1,10", "7", "100,-3", "all", "-999999999,-1"}) {
    for (std::optional<Range> previous : {std::optional<Range>(), std::optional<Range>({50, 59})}) {
      History near = uncounted(recorded);
      Result<Range> one = item_range(counted, text, 10, previous);
      std::uint64_t shift = History::kNewest - counted.size();
      if (previous) *previous = {previous->first + shift, previous->last + shift};
      Result<Range> other = item_range(near, text, 10, previous);
      ASSERT_TRUE(one && other) << text;
      EXPECT_EQ((Range{one->first + shift, one->last + shift}), *other) << text;
    }
  }
  History near = uncounted(recorded);
  EXPECT_FALSE(item_range(near, "999999999", 10));
}

}  // namespace
}  // namespace tailtrace
