#include "decoder/bts/branch_flow.h"

#include <gtest/gtest.h>

#include "tests/support/shown.h"
#include "tests/unit/bts/walker.h"

namespace tailtrace::bts {
namespace {

TEST(BranchFlow, ShowsExactlyWhatWasExecuted) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Walker walker(seed, 60);
    for (int i = 0; i < 500; ++i) walker.step();
    CodeReader code(*walker.code());
    BranchFlow flow(code);
    flow.begin_at({walker.first_pc()});
    for (const Branch& branch : walker.branches()) flow.add(branch);
    Shown shown = show(flow.finish({walker.pc()}), walker.code());
    ASSERT_EQ(shown.executed, walker.executed()) << "seed " << seed;
    ASSERT_TRUE(shown.gaps.empty()) << "seed " << seed;
  }
}

TEST(BranchFlow, NeedsNoRecordsOfTheKernelForSystemCallsThatGoOn) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Walker walker(seed, 60);
    for (int i = 0; i < 500; ++i) walker.step();
    CodeReader code(*walker.code());
    BranchFlow flow(code);
    flow.begin_at({walker.first_pc()});
    for (const Branch& branch : walker.branches())
      if (!branch.from.is_kernel()) flow.add(branch);
    Shown shown = show(flow.finish({walker.pc()}), walker.code());
    ASSERT_EQ(shown.executed, walker.executed()) << "seed " << seed;
    ASSERT_TRUE(shown.gaps.empty()) << "seed " << seed;
  }
}

TEST(BranchFlow, ShowsSignalsWhoseHandlersReturned) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Walker walker(seed, 60);
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
      walker.step();
      if (random() % 20 == 0) walker.signal();
      if (random() % 20 == 0) walker.interrupt();
    }
    CodeReader code(*walker.code());
    BranchFlow flow(code);
    flow.begin_at({walker.first_pc()});
    for (const Branch& branch : walker.branches()) flow.add(branch);
    Shown shown = show(flow.finish({walker.pc()}), walker.code());
    ASSERT_EQ(shown.executed, walker.executed()) << "seed " << seed;
    ASSERT_TRUE(shown.gaps.empty()) << "seed " << seed;
  }
}

TEST(BranchFlow, ATailOfARingShowsATailOfTheExecution) {
  Walker walker(7, 60);
  for (int i = 0; i < 2000; ++i) walker.step();
  const auto& all = walker.branches();
  for (std::size_t held = 0; held <= all.size(); held += 13) {
    CodeReader code(*walker.code());
    BranchFlow flow(code);
    for (std::size_t i = all.size() - held; i < all.size(); ++i) flow.add(all[i]);
    Shown shown = show(flow.finish({walker.pc()}), walker.code());
    ASSERT_TRUE(shown.gaps.empty());
    ASSERT_LE(shown.executed.size(), walker.executed().size());
    ASSERT_GE(shown.executed.size(), held == 0 ? 0 : 1u);
    ASSERT_TRUE(
        std::equal(shown.executed.rbegin(), shown.executed.rend(), walker.executed().rbegin()))
        << held << " branches";
  }
}

TEST(BranchFlow, ALossInTheMiddleIsAGapAndNothingIsInvented) {
  Walker walker(8, 60);
  for (int i = 0; i < 2000; ++i) walker.step();
  const auto& all = walker.branches();
  CodeReader code(*walker.code());
  BranchFlow flow(code);
  flow.begin_at({walker.first_pc()});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 300) flow.lost(GapCause::kLost);
    if (i < 300 || i >= 350) flow.add(all[i]);
  }
  Shown shown = show(flow.finish({walker.pc()}), walker.code());
  EXPECT_EQ(shown.gaps, std::vector<GapReason>{GapReason::kLost});
  EXPECT_LT(shown.executed.size(), walker.executed().size());
}

TEST(BranchFlow, ALostBeginningIsNoGap) {
  Walker walker(9, 60);
  for (int i = 0; i < 500; ++i) walker.step();
  CodeReader code(*walker.code());
  BranchFlow flow(code);
  flow.begin_at({walker.first_pc()});
  flow.lost(GapCause::kOverwritten);
  const auto& all = walker.branches();
  for (std::size_t i = 50; i < all.size(); ++i) flow.add(all[i]);
  EXPECT_FALSE(flow.complete());
  Shown shown = show(flow.finish({walker.pc()}), walker.code());
  EXPECT_TRUE(shown.gaps.empty());
  EXPECT_TRUE(
      std::equal(shown.executed.rbegin(), shown.executed.rend(), walker.executed().rbegin()));
}

TEST(BranchFlow, WithoutCodeEveryBranchIsPartOfAGap) {
  auto nothing = std::make_shared<CodeImage>();
  CodeReader code(*nothing);
  BranchFlow flow(code);
  for (std::uint64_t i = 1; i < 10; ++i) flow.add({{i * 100}, {i * 100 + 50}, 0});
  Shown shown = show(flow.finish({5000}), nothing);
  EXPECT_TRUE(shown.executed.empty());
  EXPECT_EQ(shown.gaps, std::vector<GapReason>{GapReason::kNoCode});
}

TEST(BranchFlow, ABranchThatContradictsTheCodeIsAGap) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("9090eb10")));
  CodeReader code(*image);
  BranchFlow flow(code);
  flow.begin_at({0x1000});
  flow.add({{0x1002}, {0x1020}, 0});  // the code says 0x1014
  std::vector<BranchRecord> records = flow.finish({0x1020});
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].kind, RecordKind::kGap);
  EXPECT_EQ(records[1].extra, static_cast<std::uint16_t>(GapCause::kBadTrace));
  EXPECT_EQ(records[1].insns, 2u);
  EXPECT_EQ(records[1].to.value, 0x1020u);
}

TEST(BranchFlow, AnUnfinishedHandlerBeginsWithAGap) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("90909090ebfa")));
  ASSERT_TRUE(image->add({0x2000}, *from_hex("9090c3")));
  CodeReader code(*image);
  BranchFlow flow(code);
  flow.begin_at({0x1000});
  flow.add({{0x1004}, {0x1000}, 0});
  flow.add({{Walker::kKernel}, {0x2000}, 0});
  Shown shown = show(flow.finish({0x2002}), image);
  EXPECT_EQ(shown.gaps, std::vector<GapReason>{GapReason::kUnknown});
  EXPECT_EQ(
      shown.executed,
      (std::vector<Address>{{0x1000}, {0x1001}, {0x1002}, {0x1003}, {0x1004}, {0x2000}, {0x2001}}));
}

TEST(BranchFlow, AThreadThatStoodBehindABreakpointBeginsBeforeIt) {
  // 0x1000 held INT3: the kernel says 0x1001, and the debugger puts the thread back to 0x1000.
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("48b8c3c3c3c3c3c3c3c3ebf4")));
  for (bool told_by_stop : {true, false}) {
    CodeReader code(*image);
    BranchFlow flow(code);
    flow.begin_at({0x1001});
    if (told_by_stop)
      flow.stands_at({0x1000});
    else
      flow.add({{Walker::kKernel}, {0x1000}, 0});
    flow.add({{0x100a}, {0x1000}, 0});
    EXPECT_TRUE(flow.complete());
    Shown shown = show(flow.finish({0x100a}), image);
    EXPECT_TRUE(shown.gaps.empty());
    std::vector<Address> all = {{0x1000}, {0x100a}, {0x1000}};
    EXPECT_EQ(shown.executed, all);
  }
}

TEST(BranchFlow, GoesOnFromStopToStop) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Walker walker(seed, 60);
    std::mt19937 random(seed);
    CodeReader code(*walker.code());
    BranchFlow flow(code);
    flow.begin_at({walker.first_pc()});
    std::size_t added = 0;
    for (int stop = 0; stop < 30; ++stop) {
      for (auto steps = random() % 40; steps > 0; --steps) walker.step();
      if (random() % 5 == 0) walker.signal();
      for (; added < walker.branches().size(); ++added) flow.add(walker.branches()[added]);
      std::vector<BranchRecord> all = flow.records();
      std::vector<BranchRecord> closing = flow.closing({walker.pc()});
      all.insert(all.end(), closing.begin(), closing.end());
      ASSERT_EQ(all.back().from.value, walker.pc());
      Shown shown = show(all, walker.code());
      ASSERT_EQ(shown.executed, walker.executed()) << "seed " << seed << " stop " << stop;
      ASSERT_TRUE(shown.gaps.empty());
    }
  }
}

TEST(BranchFlow, PositionsStayWhenTheOldestAreForgotten) {
  Walker walker(5, 60), same(5, 60);
  CodeReader code(*walker.code());
  BranchFlow all(code), some(code);
  all.begin_at({walker.first_pc()});
  some.begin_at({walker.first_pc()});
  for (int i = 0; i < 1000; ++i) {
    walker.step();
    if (i % 50 == 7) walker.signal();
  }
  for (const Branch& branch : walker.branches()) {
    all.add(branch);
    some.add(branch);
    some.keep(20);
  }
  ASSERT_EQ(some.records().size(), 20u);
  EXPECT_EQ(some.first() + 20, all.records().size());
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_EQ(some.records()[i], all.records()[some.first() + i]);
  EXPECT_TRUE(all.complete());
  EXPECT_FALSE(some.complete());
}

TEST(BranchFlow, ChangedCodeIsReadFromWhereTheThreadStood) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, *from_hex("9090ebfc")));
  auto changed = std::make_shared<CodeImage>(image);
  ASSERT_TRUE(changed->add({0x1000}, *from_hex("4889c8ebfb"), {1}));
  CodeReader before(image), after(*changed);
  after.set_epoch({1});
  BranchFlow flow(before);
  flow.begin_at({0x1000});
  flow.add({{0x1002}, {0x1000}, 0});
  flow.set_code(after, Address{0x1000}, 1);
  flow.add({{0x1003}, {0x1000}, 0});
  Shown shown = show(flow.finish({0x1003}), changed);
  EXPECT_TRUE(shown.gaps.empty());
  EXPECT_EQ(shown.executed,
            (std::vector<Address>{{0x1000}, {0x1001}, {0x1002}, {0x1000}, {0x1003}, {0x1000}}));
}

TEST(BranchFlow, NothingAddedIsAThreadThatStands) {
  CodeImage image;
  CodeReader code(image);
  BranchFlow flow(code);
  std::vector<BranchRecord> records = flow.finish({0x1234});
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].kind, RecordKind::kEnable);
  EXPECT_EQ(records[1].kind, RecordKind::kDisable);
  EXPECT_EQ(records[1].from.value, 0x1234u);
}

}  // namespace
}  // namespace tailtrace::bts
