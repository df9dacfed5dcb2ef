#include "decoder/history/calls/stop_stack.h"

#include <gtest/gtest.h>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

// 1000 call 1010 | 1005 ret    1010 call 1020 | 1015 nop ret    1020 nop call 1020 | 1026 ret
class Levels : public Symbolizer {
 public:
  const Function& function_at(Address a) override {
    return functions_[a.value < 0x1010 ? 0 : a.value < 0x1020 ? 1 : a.value < 0x1030 ? 2 : 3];
  }
  std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }

 private:
  Function functions_[4] = {{{0x1000}, {0x1010}, {0x1000}, "outer", "outer", "", "", ""},
                            {{0x1010}, {0x1020}, {0x1010}, "middle", "middle", "", "", ""},
                            {{0x1020}, {0x1030}, {0x1020}, "inner", "inner", "", "", ""},
                            {{0x1030}, {0x9000}, {0x1030}, "other", "other", "", "", ""}};
};

constexpr BranchRecord kCallInner{{0x1010}, {0x1020}, 0, 1, RecordKind::kCall, 0, 0};
constexpr BranchRecord kCallAgain{{0x1021}, {0x1020}, 0, 2, RecordKind::kCall, 0, 0};

class StopStack : public testing::Test {
 protected:
  // A history that begins at an address.
  void record(Address begin, std::vector<BranchRecord> records, Address stop,
              std::uint32_t insns_before_stop) {
    auto image = std::make_shared<CodeImage>();
    EXPECT_TRUE(image->add({0x1000}, *from_hex("e80b000000c3")));
    EXPECT_TRUE(image->add({0x1010}, *from_hex("e80b00000090c3")));
    EXPECT_TRUE(image->add({0x1020}, *from_hex("90e8faffffffc3")));
    auto snapshot = std::make_shared<ThreadSnapshot>();
    snapshot->code = image;
    snapshot->records = {{{}, begin, 0, 0, RecordKind::kEnable, 0, 0}};
    snapshot->records.insert(snapshot->records.end(), records.begin(), records.end());
    snapshot->records.push_back(
        {stop, {}, 0, insns_before_stop, RecordKind::kDisable, kFlagAsync | kFlagSynthetic, 0});
    history_ = std::make_unique<History>(snapshot);
  }

  // Names of the callers from before the history, of an item.
  std::vector<std::string> older(std::uint64_t item, std::vector<Address> stack,
                                 std::size_t limit = 100) {
    auto calls = calls_up_to(*history_, symbols_, anchor_of(*history_, item));
    EXPECT_TRUE(calls);
    path_ = call_path(*history_, symbols_, *calls, item, limit);
    add_older_callers(*history_, symbols_, *calls, stack, limit, path_);
    std::vector<std::string> names;
    for (const OlderCaller& caller : path_.older) names.push_back(caller.function->name);
    return names;
  }

  using Names = std::vector<std::string>;
  Levels symbols_;
  std::unique_ptr<History> history_;
  CallPath path_;
};

TEST_F(StopStack, HasTheCallersOfTheFunctionThatItAllHappenedIn) {
  record({0x1020}, {}, {0x1021}, 1);
  EXPECT_EQ(older(1, {{0x1021}, {0x1015}, {0x1005}, {0x1234}}),
            (Names{"middle", "outer", "other"}));
  EXPECT_EQ(path_.older[0].address, Address{0x1014});
}

TEST_F(StopStack, IsNotNeededOfCallersThatWereReturnedTo) {
  BranchRecord home{{0x1026}, {0x1015}, 0, 1, RecordKind::kReturn, 0, 0};
  record({0x1026}, {home}, {0x1016}, 1);
  EXPECT_TRUE(older(1, {}).empty());
  ASSERT_EQ(path_.frames.size(), 2u);
  EXPECT_EQ(path_.frames[1].function->name, "middle");
  EXPECT_TRUE(path_.frames[1].is_return);
}

TEST_F(StopStack, IsReachedByACallAndByAReturn) {
  record({0x1010}, {kCallInner}, {0x1020}, 0);
  EXPECT_EQ(older(1, {{0x1020}, {0x1015}, {0x1005}}), Names{"outer"});
  BranchRecord home{{0x1026}, {0x1015}, 0, 1, RecordKind::kReturn, 0, 0};
  record({0x1026}, {home}, {0x1015}, 0);
  EXPECT_EQ(older(1, {{0x1015}, {0x1005}}), (Names{"middle", "outer"}));
}

TEST_F(StopStack, IsTakenFrameByFrameWhereAFunctionCallsItself) {
  // The third inner call is entered, the second one too; the first is older than the history.
  record({0x1020}, {kCallAgain, kCallAgain}, {0x1021}, 1);
  const std::vector<Address> stack{{0x1021}, {0x1026}, {0x1026}, {0x1026}, {0x1015}, {0x1005}};
  EXPECT_EQ(older(5, stack), (Names{"inner", "middle", "outer"}));
  EXPECT_EQ(older(1, stack), (Names{"inner", "middle", "outer"}));
}

TEST_F(StopStack, OfOtherCallsThanThoseRecordedSaysNothing) {
  record({0x1010}, {kCallInner}, {0x1021}, 1);
  EXPECT_EQ(older(2, {{0x1021}, {0x1015}, {0x1005}}), Names{"outer"});
  EXPECT_EQ(older(2, {{0x1021}, {0x1234}, {0x1005}}), Names{});
  EXPECT_EQ(older(2, {{0x1234}, {0x1015}, {0x1005}}), Names{});
  EXPECT_EQ(older(2, {{0x1021}}), Names{});
  EXPECT_EQ(older(2, {}), Names{});
}

TEST_F(StopStack, DoesNotReachAcrossALoss) {
  const BranchRecord loss{{0x1015}, {}, 0, 0, RecordKind::kGap, kFlagAsync, 0};
  const BranchRecord again{{}, {0x1020}, 0, 0, RecordKind::kEnable, 0, 0};
  record({0x1000}, {{{0x1000}, {0x1010}, 0, 1, RecordKind::kCall, 0, 0}, loss, again}, {0x1021}, 1);
  const std::vector<Address> stack{{0x1021}, {0x1015}, {0x1005}};
  EXPECT_EQ(older(history_->size(), stack), (Names{"middle", "outer"}));
  EXPECT_EQ(older(1, stack), Names{});
}

TEST_F(StopStack, IsCutWhereThePathIs) {
  record({0x1020}, {}, {0x1021}, 1);
  EXPECT_EQ(older(1, {{0x1021}, {0x1015}, {0x1005}}, 2), Names{"middle"});
  EXPECT_TRUE(path_.cut);
}

}  // namespace
}  // namespace tailtrace
