#include "decoder/pt/synthesis/synthesis.h"

#include <gtest/gtest.h>

#include "tests/support/libipt_walk.h"
#include "tests/support/random_program.h"

namespace tailtrace::pt {
namespace {

void expect_same_path(const Walk& walk, const SynthesisOptions& options) {
  auto trace = synthesize(walk.snapshot.records, *walk.snapshot.code, {}, options);
  ASSERT_TRUE(trace) << trace.error().to_string();
  LibiptWalk seen = walk_with_libipt(*trace, *walk.snapshot.code);
  EXPECT_TRUE(seen.errors.empty()) << seen.errors.front();
  std::size_t common = std::min(seen.instructions.size(), walk.executed.size());
  for (std::size_t i = 0; i < common; ++i)
    ASSERT_EQ(seen.instructions[i].value, walk.executed[i].value) << "instruction " << i;
  EXPECT_EQ(seen.instructions.size(), walk.executed.size());
}

TEST(Synthesis, RandomWalksAreWhatLibiptReads) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram program(seed, 2 + seed % 50);
    WalkOptions walk_options;
    walk_options.branches = 3000;
    walk_options.transactions = seed % 2 == 0;
    walk_options.times = true;
    Walk walk = random_walk(program, seed, walk_options);
    SynthesisOptions options;
    options.return_compression = seed % 3 != 0;
    options.timing = static_cast<SynthesisTiming>(seed % 4);
    options.pause_at_psb = seed % 5 == 0;
    for (std::uint64_t period : {0, 1, 64, 4096}) {
      SCOPED_TRACE(period);
      options.psb_period_bytes = period;
      expect_same_path(walk, options);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A program of hand-written bytes and records.
struct Hand {
  CodeImage code;
  std::vector<BranchRecord> records;

  Hand(std::uint64_t at, const char* hex) { EXPECT_TRUE(code.add({at}, *from_hex(hex))); }
  void add(std::uint64_t from, std::uint64_t to, std::uint32_t insns, RecordKind kind,
           std::uint8_t flags = 0) {
    records.push_back({{from}, {to}, 0, insns, kind, flags, 0});
  }
  LibiptWalk walk(const SynthesisOptions& options = {}) {
    auto trace = synthesize(records, code, {}, options);
    EXPECT_TRUE(trace);
    return walk_with_libipt(*trace, code);
  }
};

std::vector<std::uint64_t> values(const std::vector<Address>& addresses) {
  std::vector<std::uint64_t> out;
  for (Address a : addresses) out.push_back(a.value);
  return out;
}

using List = std::vector<std::uint64_t>;
using Texts = std::vector<std::string>;

TEST(Synthesis, AJumpToItselfIsCountedByItsLaps) {
  Hand hand(0x1000, "ebfe");  // jmp .
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  for (int i = 0; i < 3; ++i) hand.add(0x1000, 0x1000, 1, RecordKind::kJump);
  hand.add(0x1000, 0, 0, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1000, 0x1000}));
  EXPECT_EQ(seen.errors, Texts{});
}

TEST(Synthesis, ALoopOfJumpsThatIsEnteredByAJumpIsCountedByItsLaps) {
  // 1000: jmp 1003; 1002: nop; 1003: nop; 1004: jmp 1003
  Hand hand(0x1000, "eb01909090ebfc");
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1000, 0x1003, 1, RecordKind::kJump);
  for (int i = 0; i < 2; ++i) hand.add(0x1005, 0x1003, 3, RecordKind::kJump);
  hand.add(0x1004, 0, 1, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions),
            (List{0x1000, 0x1003, 0x1004, 0x1005, 0x1003, 0x1004, 0x1005, 0x1003}));
  EXPECT_EQ(seen.errors, Texts{});
}

TEST(Synthesis, ALoopOfJumpsThatIsEnteredByFallingIntoItIsCountedByItsLaps) {
  // 1000: nop; 1001: nop; 1002: jmp 1000
  Hand hand(0x1000, "9090ebfc");
  hand.add(0, 0x1001, 0, RecordKind::kEnable);
  hand.add(0x1002, 0x1000, 2, RecordKind::kJump);
  hand.add(0x1002, 0x1000, 3, RecordKind::kJump);
  hand.add(0x1001, 0x1001, 1, RecordKind::kInterrupt, kFlagAsync);
  hand.add(0x1002, 0, 1, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions),
            (List{0x1001, 0x1002, 0x1000, 0x1001, 0x1002, 0x1000, 0x1001}));
  EXPECT_EQ(seen.errors, Texts{});
}

TEST(Synthesis, AClockMayJumpFurtherThanOnePacketCounts) {
  Hand hand(0x1000, "ebfe");  // jmp .
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  for (std::uint64_t time : {1000ull, 2000ull, 1ull << 63, ~0ull}) {
    hand.add(0x1000, 0x1000, 1, RecordKind::kJump);
    hand.records.back().time = time;
  }
  hand.add(0x1000, 0, 0, RecordKind::kDisable, kFlagAsync);
  SynthesisOptions options;
  options.timing = SynthesisTiming::kCyc;
  LibiptWalk seen = hand.walk(options);
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1000, 0x1000, 0x1000}));
}

TEST(Synthesis, UnknownCodeBecomesABreakThatKeepsWhatIsKnown) {
  Hand hand(0x1000, "90909090");                              // four NOPs, then nothing
  EXPECT_TRUE(hand.code.add({0x1010}, *from_hex("ebee90")));  // 1010: jmp 1000
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1010, 0x1000, 10, RecordKind::kJump);
  hand.add(0x1002, 0, 2, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions),
            (List{0x1000, 0x1001, 0x1002, 0x1003, 0x1010, 0x1000, 0x1001}));
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(seen.events, (Texts{"0: enabled 1000", "4: disabled at 1004", "4: enabled 1010",
                                "7: disabled at 1002"}));
}

TEST(Synthesis, ARunThatContradictsTheCodeIsNotShown) {
  Hand hand(0x1000, "9090eb0090ebf9");  // 1002: jmp 1004; 1005: jmp 1000
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1005, 0x1000, 5, RecordKind::kJump);  // runs through the jump at 1002
  hand.add(0x1002, 0, 2, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions), (List{0x1005, 0x1000, 0x1001}));
  EXPECT_EQ(seen.errors, Texts{});
}

TEST(Synthesis, AGapThatEndsWhereItBeganCanBeSeen) {
  Hand hand(0x1000, "9090");
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1001, 0x1001, 1, RecordKind::kGap, kFlagAsync);
  hand.add(0x1002, 0, 1, RecordKind::kDisable, kFlagAsync);
  LibiptWalk seen = hand.walk();
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1001}));
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(seen.events, (Texts{"0: enabled 1000", "1: disabled at 1001", "1: overflow 1001",
                                "2: disabled at 1002"}));
}

TEST(Synthesis, TheNewestInstructionsComeWithoutTheOlderOnes) {
  Hand hand(0x1000, "9090ebfc");  // 1000: nop; nop; jmp 1000
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  for (int i = 0; i < 1000; ++i) hand.add(0x1002, 0x1000, 3, RecordKind::kJump);
  hand.add(0x1001, 0, 1, RecordKind::kDisable, kFlagAsync);
  SynthesisOptions options;
  options.newest_instructions = 5;
  LibiptWalk seen = hand.walk(options);
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1001, 0x1002, 0x1000}));
  options.newest_instructions = 7;
  EXPECT_EQ(hand.walk(options).instructions.size(), 7u);
  options.newest_instructions = 0;
  EXPECT_EQ(values(hand.walk(options).instructions), (List{0x1000}));
}

// 40 is INC in 32- and 16-bit code and a prefix in 64-bit code; 66 90 is one instruction in each.
TEST(Synthesis, CodeOf32And16BitsIsReadAsSuch) {
  for (CodeMode mode : {CodeMode::k32, CodeMode::k16}) {
    Hand hand(0x1000, "4074fdc3");  // 1000: inc; 1001: jz 1000; 1003: ret
    hand.add(0, 0x1000, 0, RecordKind::kEnable);
    hand.add(0x1001, 0x1000, 2, RecordKind::kConditional);
    hand.add(0x1003, 0x1000, 3, RecordKind::kReturn);
    hand.add(0x1001, 0, 1, RecordKind::kDisable, kFlagAsync);
    SynthesisOptions options;
    options.mode = mode;
    LibiptWalk seen = hand.walk(options);
    EXPECT_EQ(seen.errors, Texts{});
    EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1001, 0x1000, 0x1001, 0x1003, 0x1000}));
  }
}

// What ran code that is no longer there cannot be shown to who has only the newest.
TEST(Synthesis, OldCodeThatDiffersIsABreakForWhoSeesOnlyTheNewest) {
  Hand hand(0x1000, "90eb0e");                              // 1000: nop; jmp 1011
  ASSERT_TRUE(hand.code.add({0x1011}, *from_hex("ebed")));  // 1011: jmp 1000
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1001, 0x1011, 2, RecordKind::kJump);
  hand.add(0x1011, 0x1000, 1, RecordKind::kJump);
  hand.add(0x1000, 0x1000, 0, RecordKind::kCodeChange, kFlagAsync);
  ASSERT_TRUE(hand.code.add({0x1000}, *from_hex("0f1f00eb0c"), {1}));  // a longer nop; jmp 1011
  hand.add(0x1003, 0x1011, 2, RecordKind::kJump);
  hand.add(0x1011, 0, 0, RecordKind::kDisable, kFlagAsync);
  SynthesisOptions options;
  options.newest_code = true;
  LibiptWalk seen = hand.walk(options);
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(values(seen.instructions), (List{0x1011, 0x1000, 0x1003}));
}

// Only the bytes that ran say what did: other code may lead to the same place.
TEST(Synthesis, OldCodeThatIsAsLongIsABreakForWhoSeesOnlyTheNewest) {
  Hand hand(0x1000, "90eb0e");                              // 1000: nop; jmp 1011
  ASSERT_TRUE(hand.code.add({0x1011}, *from_hex("ebed")));  // 1011: jmp 1000
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1001, 0x1011, 2, RecordKind::kJump);
  hand.add(0x1011, 0x1000, 1, RecordKind::kJump);
  hand.add(0x1000, 0x1000, 0, RecordKind::kCodeChange, kFlagAsync);
  ASSERT_TRUE(hand.code.add({0x1000}, *from_hex("f8"), {1}));  // clc; jmp 1011
  hand.add(0x1001, 0x1011, 2, RecordKind::kJump);
  hand.add(0x1011, 0x1000, 1, RecordKind::kJump);
  hand.add(0x1000, 0x1000, 0, RecordKind::kCodeChange, kFlagAsync);
  ASSERT_TRUE(hand.code.add({0x1000}, *from_hex("90"), {2}));  // nop again
  hand.add(0x1000, 0, 0, RecordKind::kDisable, kFlagAsync);
  SynthesisOptions options;
  options.newest_code = true;
  LibiptWalk seen = hand.walk(options);
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1001, 0x1011, 0x1001, 0x1011}));
}

// Code that is gone is as good as none: what came after it is shown.
TEST(Synthesis, CodeThatIsGoneIsABreakForWhoSeesOnlyTheNewest) {
  Hand hand(0x1000, "90ffd090ebfd");                      // 1000: nop; call *rax; nop; jmp 1003
  ASSERT_TRUE(hand.code.add({0x2000}, *from_hex("c3")));  // 2000: ret
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  hand.add(0x1001, 0x2000, 2, RecordKind::kIndirectCall);
  hand.add(0x2000, 0x1003, 1, RecordKind::kReturn);
  hand.add(0x1004, 0x1003, 2, RecordKind::kJump);
  hand.add(0x1003, 0, 0, RecordKind::kDisable, kFlagAsync);
  ASSERT_TRUE(hand.code.forget({0x2000}, 1, {1}));
  SynthesisOptions options;
  options.newest_code = true;
  LibiptWalk seen = hand.walk(options);
  EXPECT_EQ(seen.errors, Texts{});
  EXPECT_EQ(values(seen.instructions), (List{0x1000, 0x1001, 0x1003, 0x1004}));
}

TEST(Synthesis, RecordsThatUnfoldBeyondTheLimitAreAnError) {
  Hand hand(0x1000, "74007400ebfa");
  hand.add(0, 0x1000, 0, RecordKind::kEnable);
  for (int i = 0; i < 1000; ++i) hand.add(0x1004, 0x1000, 3, RecordKind::kJump);
  SynthesisOptions options;
  options.limit_bytes = 100;
  auto trace = synthesize(hand.records, hand.code, {}, options);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace tailtrace::pt
