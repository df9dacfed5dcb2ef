#include "decoder/history/queries/diff.h"

#include <gtest/gtest.h>

#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kMoved_bytes = 0x7000;

// The same run of a program that was loaded elsewhere.
std::shared_ptr<ThreadSnapshot> moved(const ThreadSnapshot& snapshot) {
  auto other = std::make_shared<ThreadSnapshot>(snapshot);
  Bytes code(1 << 14);
  code.resize(snapshot.code->read(ToyProgram::kBase, code));
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add(ToyProgram::kBase + kMoved_bytes, code));
  other->code = image;
  for (BranchRecord& record : other->records)
    for (Address* address : {&record.from, &record.to})
      if (!address->is_null()) *address = *address + kMoved_bytes;
  return other;
}

HistoryDiff diff_of(const History& here, const History& there, std::size_t limit = 10) {
  ToySymbols ours, theirs(kMoved_bytes);
  Result<HistoryDiff> diff = diff_histories({here, ours, {1, here.size()}, ""},
                                            {there, theirs, {1, there.size()}, ""}, limit);
  EXPECT_TRUE(diff);
  return diff ? *diff : HistoryDiff{};
}

TEST(Diff, WhereAProgramWasLoadedIsNoDifference) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 4000, seed % 2 == 0);
    History here(run.snapshot), there(moved(*run.snapshot));
    ASSERT_EQ(there.gaps(), 0u);
    HistoryDiff diff = diff_of(here, there);
    EXPECT_TRUE(diff.divergences.empty());
    EXPECT_EQ(diff.same_calls, diff.calls_here);
    EXPECT_EQ(diff.calls_there, diff.calls_here);
  }
}

TEST(Diff, WhatAProgramIsCalledIsNoDifference) {
  ToyRun run = ToyProgram(1, 4, 5).run(1, 4000);
  History here(run.snapshot), there(moved(*run.snapshot));
  ToySymbols ours(0, "/bin/toy"), theirs(kMoved_bytes, "/opt/toy-2");
  Result<HistoryDiff> diff = diff_histories({here, ours, {1, here.size()}, ""},
                                            {there, theirs, {1, there.size()}, ""}, 10);
  ASSERT_TRUE(diff);
  EXPECT_TRUE(diff->divergences.empty());
  EXPECT_EQ(diff->same_calls, diff->calls_here);
}

TEST(Diff, TheFirstIsWhereTheRunsPartedAndNothingBeforeItIsTold) {
  int paths = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ToyProgram program(seed, 4, 5);
    ToyRun a = program.run(seed, 600), b = program.run(seed + 1000, 600);
    std::size_t same = 0;
    while (same < 600 && a.executed[same] == b.executed[same]) ++same;
    if (same == 600) continue;
    HistoryDiff diff = diff_of(History(a.snapshot), History(moved(*b.snapshot)), 1000);
    ASSERT_FALSE(diff.divergences.empty()) << seed;
    const Divergence& first = diff.divergences.front();
    if (first.what == Divergence::What::kPath) {
      // Two jumps into the middle of one function are compared by line, and may go on alike.
      paths += first.fork_here == same && first.fork_there == same ? 1 : 0;
      EXPECT_TRUE(first.fork_here == 0 || first.fork_here >= same) << seed;
    }
    for (const Divergence& divergence : diff.divergences)
      for (Range items : {divergence.here, divergence.there})
        if (items.size() != 0) {
          EXPECT_GT(items.first, same) << seed;
        }
  }
  EXPECT_GT(paths, 5);
}

TEST(Diff, AnOlderPartThatOnlyOneHoldsIsNoDifference) {
  ToyRun run = ToyProgram(3, 4, 5).run(3, 4000);
  auto tail = std::make_shared<ThreadSnapshot>(*moved(*run.snapshot));
  tail->records.erase(tail->records.begin(), tail->records.begin() + 300);
  tail->first.value += 300;
  tail->complete = false;
  History here(run.snapshot), there(tail);
  ASSERT_LT(there.size(), here.size());
  HistoryDiff diff = diff_of(here, there);
  EXPECT_TRUE(diff.divergences.empty());
  EXPECT_LT(diff.calls_there, diff.calls_here);
  EXPECT_EQ(diff.same_calls, diff.calls_there);
}

TEST(Diff, StopsAtItsLimitAndSaysSo) {
  ToyProgram program(5, 4, 5);
  ToyRun a = program.run(5, 3000), b = program.run(6, 3000);
  HistoryDiff diff = diff_of(History(a.snapshot), History(moved(*b.snapshot)), 2);
  EXPECT_EQ(diff.divergences.size(), 2u);
  EXPECT_TRUE(diff.more);
}

TEST(Diff, EmptyHistoriesAreTheSame) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = std::make_shared<CodeImage>();
  History empty(snapshot);
  EXPECT_TRUE(diff_of(empty, empty).divergences.empty());
  ToyRun run = ToyProgram(1, 2, 2).run(1, 100);
  HistoryDiff diff = diff_of(History(run.snapshot), empty);
  ASSERT_EQ(diff.divergences.size(), 1u);
  EXPECT_EQ(diff.divergences[0].here, (Range{1, 100}));
  EXPECT_EQ(diff.divergences[0].there.size(), 0u);
}

}  // namespace
}  // namespace tailtrace
