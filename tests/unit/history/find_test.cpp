#include "decoder/history/queries/find.h"

#include <gtest/gtest.h>

#include "decoder/history/location_matcher.h"
#include "decoder/history/record_slices.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

// The same by looking at every item.
std::vector<std::uint64_t> found_one_by_one(const History& history, Symbolizer& symbols,
                                            Range range, const Wanted& wanted) {
  std::vector<std::uint64_t> found;
  HistoryCursor cursor(history);
  LocationMatcher matcher(wanted.location.value_or(Location{}), symbols);
  for (cursor.seek(range.first); cursor.valid() && cursor.item().number <= range.last;
       cursor.next()) {
    const HistoryItem& item = cursor.item();
    if ((wanted.since != 0 || wanted.until != ~0ull) &&
        (item.time == 0 || item.time < wanted.since || item.time > wanted.until))
      continue;
    const bool conditional = item.instruction.kind == InstructionClass::kConditional;
    bool good = !item.is_gap;
    if (wanted.kind) switch (wanted.kind->sort) {
        case ItemKind::Sort::kClass:
          good = good && item.instruction.kind == wanted.kind->instruction;
          break;
        case ItemKind::Sort::kTaken:
          good = good && conditional && item.branch != nullptr;
          break;
        case ItemKind::Sort::kNotTaken:
          good = good && conditional && item.branch == nullptr;
          break;
        case ItemKind::Sort::kGap:
          good = item.is_gap && !wanted.location;
          break;
        case ItemKind::Sort::kEvent:
          continue;  // see EventsAreFoundAtTheItemBehindThem
      }
    if (good && wanted.location)
      good = wanted.entries ? matcher.is_entry(item.instruction.address)
                            : matcher.holds(item.instruction.address);
    if (good) found.push_back(item.number);
  }
  return found;
}

std::vector<std::uint64_t> found(const History& history, Symbolizer& symbols, Range range,
                                 const Wanted& wanted, Order order, std::size_t limit = ~0ull) {
  std::vector<std::uint64_t> numbers;
  find_items(history, symbols, range, wanted, order, [&](std::uint64_t number) {
    numbers.push_back(number);
    return numbers.size() < limit;
  });
  return numbers;
}

// Records with times, and a stretch that was not recorded.
std::shared_ptr<const ThreadSnapshot> timed_snapshot(std::uint64_t seed) {
  ToyRun run = ToyProgram(seed, 4, 5).run(seed, 9000, seed % 2 == 0);
  std::vector<BranchRecord>& records = run.snapshot->records;
  for (std::size_t i = 0; i < records.size(); ++i) records[i].time = i < 5 ? 0 : 100 + i / 3;
  std::size_t middle = records.size() / 2;
  records.insert(
      records.begin() + static_cast<std::ptrdiff_t>(middle),
      {records[middle - 1].to, {}, 100 + middle / 3, 0, RecordKind::kGap, kFlagAsync, 0});
  return run.snapshot;
}

History timed_history(std::uint64_t seed) { return History(timed_snapshot(seed)); }

std::vector<Wanted> questions(const ToyRun& run) {
  std::vector<Wanted> all(1);
  auto ask = [&](const char* location, const char* kind, bool entries) {
    Wanted wanted;
    if (location != nullptr) wanted.location = *parse_location(location);
    if (kind != nullptr) wanted.kind = *parse_item_kind(kind);
    wanted.entries = entries;
    all.push_back(wanted);
  };
  for (const char* kind : {"call", "taken", "not-taken", "gap", "return", "other", "indirect-jump"})
    ask(nullptr, kind, false);
  for (const char* location : {"f1", "f1+0x4", "toy.c:3", "toy.c:f2", "toy`f0", "nothing"})
    for (bool entries : {false, true}) ask(location, nullptr, entries);
  ask("toy.c:2", "taken", false);
  Wanted address;
  address.location.emplace().address = run.executed[run.executed.size() / 2];
  all.push_back(address);
  for (std::size_t i : {0u, 2u, 9u}) {
    Wanted timed = all[i];
    timed.since = 150;
    timed.until = 300;
    all.push_back(timed);
  }
  return all;
}

TEST(Find, IsWhatLookingAtEveryItemFinds) {
  ToySymbols symbols;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 9000, seed % 2 == 0);
    History history = timed_history(seed);
    for (const Wanted& wanted : questions(run))
      for (Range range : {Range{1, history.size()}, Range{17 * seed, history.size() - 5 * seed}}) {
        auto truth = found_one_by_one(history, symbols, range, wanted);
        EXPECT_EQ(found(history, symbols, range, wanted, Order::kOldestFirst), truth);
        auto newest = found(history, symbols, range, wanted, Order::kNewestFirst, 7);
        std::reverse(truth.begin(), truth.end());
        truth.resize(std::min<std::size_t>(truth.size(), 7));
        EXPECT_EQ(newest, truth);
      }
  }
}

TEST(Find, IsTheSameWhereNobodyHasCounted) {
  ToySymbols symbols;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 9000, seed % 2 == 0);
    auto snapshot = timed_snapshot(seed);
    History counted(snapshot);
    HistorySettings settings;
    settings.numbers = HistorySettings::Numbers::kFromNewest;
    auto records = std::make_shared<RecordSlices>(snapshot, snapshot->records, *snapshot, 128);
    for (const Wanted& wanted : questions(run)) {
      History uncounted(*snapshot, records, settings);
      std::vector<std::uint64_t> numbers;
      find_newest_items(uncounted, symbols, wanted, [&](std::uint64_t number) {
        numbers.push_back(number + counted.size() - History::kNewest);
        return numbers.size() < 1000;
      });
      EXPECT_EQ(numbers,
                found(counted, symbols, {1, counted.size()}, wanted, Order::kNewestFirst, 1000));
    }
  }
}

TEST(Find, EventsAreFoundAtTheItemBehindThem) {
  NoSymbols symbols;
  for (std::uint64_t seed = 2; seed <= 20; seed += 2) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 9000, true);
    History history(run.snapshot);
    std::vector<std::uint64_t> truth;
    std::uint64_t executed = 0;
    for (const BranchRecord& record : run.snapshot->records) {
      executed += record.insns;
      if (record.kind != RecordKind::kSignal) continue;
      std::uint64_t number = std::min(executed + 1, history.size());
      if (truth.empty() || truth.back() != number) truth.push_back(number);
    }
    ASSERT_GT(truth.size(), 20u);
    Wanted wanted;
    wanted.kind = *parse_item_kind("signal");
    Range whole{1, history.size()};
    EXPECT_EQ(found(history, symbols, whole, wanted, Order::kOldestFirst), truth);
    Range part{truth[3], truth[15]};
    std::vector<std::uint64_t> inside(truth.begin() + 3, truth.begin() + 16);
    EXPECT_EQ(found(history, symbols, part, wanted, Order::kOldestFirst), inside);
    std::reverse(truth.begin(), truth.end());
    EXPECT_EQ(found(history, symbols, whole, wanted, Order::kNewestFirst), truth);
  }
}

TEST(Find, NothingIsInAnEmptyHistoryOrInOneThatIsAGap) {
  NoSymbols symbols;
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = std::make_shared<CodeImage>();
  History empty(snapshot);
  for (const char* kind : {"call", "gap", "signal"}) {
    Wanted wanted;
    wanted.kind = *parse_item_kind(kind);
    EXPECT_TRUE(found(empty, symbols, {}, wanted, Order::kNewestFirst).empty());
  }
  auto lost = std::make_shared<ThreadSnapshot>(*snapshot);
  lost->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                   {{}, {}, 0, 0, RecordKind::kGap, kFlagAsync, 0}};
  History gap(lost);
  ASSERT_EQ(gap.size(), 1u);
  Wanted wanted;
  EXPECT_TRUE(found(gap, symbols, {1, 1}, wanted, Order::kNewestFirst).empty());
  wanted.kind = *parse_item_kind("gap");
  EXPECT_EQ(found(gap, symbols, {1, 1}, wanted, Order::kNewestFirst),
            std::vector<std::uint64_t>{1});
}

TEST(Find, EveryWordForAKindIsRead) {
  for (const std::string& word : item_kind_words()) EXPECT_TRUE(parse_item_kind(word)) << word;
  Result<ItemKind> unknown = parse_item_kind("branchy");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_NE(unknown.error().why.find("not-taken"), std::string::npos);
}

}  // namespace
}  // namespace tailtrace
