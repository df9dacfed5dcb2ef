#include "decoder/history/calls/call_path.h"

#include <gtest/gtest.h>

#include "decoder/history/queries/stats.h"
#include "tests/support/call_story.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

// 1000 call 1010 | 1005 ret    1010 call 1020 | 1015 nop ret    1020 nop ret
std::shared_ptr<ThreadSnapshot> three_functions() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("e80b000000c3")));
  EXPECT_TRUE(image->add({0x1010}, *from_hex("e80b00000090c3")));
  EXPECT_TRUE(image->add({0x1020}, *from_hex("90c3")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  return snapshot;
}

class Sixteen : public Symbolizer {
 public:
  const Function& function_at(Address a) override {
    return functions_[a.value < 0x1010 ? 0 : a.value < 0x1020 ? 1 : 2];
  }
  std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }

 private:
  Function functions_[3] = {{{0x1000}, {0x1010}, {0x1000}, "outer", "outer", "", "", ""},
                            {{0x1010}, {0x1020}, {0x1010}, "middle", "middle", "", "", ""},
                            {{0x1020}, {0x1030}, {0x1020}, "inner", "inner", "", "", ""}};
};

struct ShownStep {
  std::string name;
  std::uint64_t item;
  bool is_return;

  friend bool operator==(const ShownStep&, const ShownStep&) = default;
};

std::vector<ShownStep> path_at(const History& history, std::uint64_t item,
                               std::size_t limit = 100) {
  static Sixteen symbols;
  Result<CallHistory> calls = calls_up_to(history, symbols, history.size());
  EXPECT_TRUE(calls);
  std::vector<ShownStep> shown;
  for (const PathFrame& frame : call_path(history, symbols, *calls, item, limit).frames)
    shown.push_back({frame.function->name, frame.item, frame.is_return});
  return shown;
}

TEST(CallPath, HasTheCallsThatWereOpenWithTheirPlaces) {
  auto snapshot = three_functions();
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1000}, {0x1010}, 0, 1, RecordKind::kCall, 0, 0},
                       {{0x1010}, {0x1020}, 0, 1, RecordKind::kCall, 0, 0},
                       {{0x1021}, {0x1015}, 0, 2, RecordKind::kReturn, 0, 0},
                       {{0x1016}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  ASSERT_EQ(history.size(), 5u);
  EXPECT_EQ(
      path_at(history, 4),
      (std::vector<ShownStep>{{"inner", 4, false}, {"middle", 2, false}, {"outer", 1, false}}));
  EXPECT_EQ(path_at(history, 5),
            (std::vector<ShownStep>{{"middle", 5, false}, {"outer", 1, false}}));
  EXPECT_EQ(path_at(history, 4, 1), (std::vector<ShownStep>{{"inner", 4, false}}));
}

TEST(CallPath, OfACallOlderThanTheHistoryWhatWasReturnedToIsKnown) {
  auto snapshot = three_functions();
  snapshot->records = {{{}, {0x1020}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1021}, {0x1015}, 0, 2, RecordKind::kReturn, 0, 0},
                       {{0x1016}, {0x1005}, 0, 2, RecordKind::kReturn, 0, 0},
                       {{0x1005}, {}, 0, 0, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  ASSERT_EQ(history.size(), 4u);
  EXPECT_EQ(path_at(history, 1),
            (std::vector<ShownStep>{{"inner", 1, false}, {"middle", 3, true}}));
}

TEST(CallPath, NoneIsKnownAtAGap) {
  auto snapshot = three_functions();
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{}, {}, 0, 0, RecordKind::kGap, kFlagAsync, 0}};
  EXPECT_TRUE(path_at(History(snapshot), 1).empty());
}

// What single items add up to.
TEST(Stats, AreThoseOfWalkingItemByItem) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 3000, seed % 2 == 0);
    History history(run.snapshot);
    ToySymbols symbols;
    Range range{1 + seed * 7, history.size() - seed * 3};
    HistoryStats truth;
    std::map<std::string, FunctionStats> functions;
    std::map<Address, int> different;
    HistoryCursor cursor(history);
    for (cursor.seek(range.first); cursor.item().number <= range.last; cursor.next()) {
      const HistoryItem& item = cursor.item();
      if (item.is_gap) continue;
      const Instruction& insn = item.instruction;
      ++truth.instructions;
      ++different[insn.address];
      bool conditional = insn.kind == InstructionClass::kConditional;
      truth.conditionals += conditional ? 1 : 0;
      truth.taken += conditional && item.branch != nullptr ? 1 : 0;
      if (item.branch != nullptr) ++truth.branches[std::string(class_name(insn.kind))];
      const Function& function = symbols.function_at(insn.address);
      ++functions[function.name].instructions;
      functions[function.name].entries += function.entry == insn.address ? 1 : 0;
    }
    HistoryStats stats = make_stats(history, symbols, range);
    EXPECT_EQ(stats.instructions, truth.instructions);
    EXPECT_EQ(stats.distinct_instructions, different.size());
    EXPECT_EQ(stats.conditionals, truth.conditionals);
    EXPECT_EQ(stats.taken, truth.taken);
    EXPECT_EQ(stats.branches, truth.branches);
    ASSERT_EQ(stats.functions.size(), functions.size());
    for (const FunctionStats& function : stats.functions) {
      EXPECT_EQ(function.instructions, functions[function.name].instructions);
      EXPECT_EQ(function.entries, functions[function.name].entries);
    }
  }
}

TEST(Stats, OfAnEmptyHistoryAreZero) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = std::make_shared<CodeImage>();
  NoSymbols symbols;
  HistoryStats stats = make_stats(History(snapshot), symbols, {});
  EXPECT_EQ(stats.instructions, 0u);
  EXPECT_TRUE(stats.functions.empty());
}

// A signal in the middle of a function, and one before its first instruction.
TEST(CallPath, WhatASignalInterruptedIsOutsideOfItsHandler) {
  for (std::uint64_t executed : {1, 0}) {
    auto snapshot = three_functions();
    const Address at{0x1010 + executed * 6};
    snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                         {{0x1000}, {0x1010}, 0, 1, RecordKind::kCall, 0, 0}};
    if (executed != 0) {
      snapshot->records.push_back({{0x1010}, {0x1020}, 0, 1, RecordKind::kCall, 0, 0});
      snapshot->records.push_back({{0x1021}, {0x1015}, 0, 2, RecordKind::kReturn, 0, 0});
    }
    const auto insns = static_cast<std::uint32_t>(executed);
    snapshot->records.push_back({at, {0x1020}, 0, insns, RecordKind::kSignal, kFlagAsync, 11});
    snapshot->records.push_back({{0x1021}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0});
    History history(snapshot);
    Sixteen symbols;
    Result<CallHistory> calls = calls_up_to(history, symbols, history.size());
    ASSERT_TRUE(calls);
    CallPath path = call_path(history, symbols, *calls, history.size(), 10);
    ASSERT_EQ(path.frames.size(), 3u);
    EXPECT_EQ(path.frames[0].function->name, "inner");
    EXPECT_EQ(path.frames[1].function->name, "middle");
    ASSERT_TRUE(path.frames[1].event);
    EXPECT_EQ(path.frames[1].event->from, at);
    EXPECT_EQ(path.frames[1].item, history.size() - 1);
    EXPECT_EQ(path.frames[2].function->name, "outer");
    EXPECT_FALSE(path.frames[2].event);
  }
}

// Of both, and of a second handler that comes behind the first.
TEST(CallPath, WhatASignalInterruptedIsOutsideOfWhatItsHandlerReturnsTo) {
  CallStory story({"main", "f", "one", "two", "restorer"});
  story.call("f").signal("one").ret_to("restorer", 0).sigreturn().signal_at_once("two");
  story.ret_to("restorer", 0).told();
  for (std::uint64_t number : {3, 4, 5, 6}) {
    const std::uint64_t item = story.calls().at(number).items.first;
    const CallPath path = call_path(story.history(), story, story.calls(), item, 9);
    ASSERT_EQ(path.frames.size(), 3u) << number;
    EXPECT_EQ(path.frames[1].function->name, "f");
    ASSERT_TRUE(path.frames[1].event) << number;
    EXPECT_EQ(path.frames[2].function->name, "main");
    EXPECT_FALSE(path.frames[2].event);
  }
}

TEST(CallPath, WhatADebuggerHadCalledBeforeItBeganIsNoCaller) {
  CallStory story({"main", "f", "mmap", "start", "g"});
  story.call("f").call_by_debugger("mmap", "start").call_by_debugger("mmap", "start").call("g");
  story.told();
  const CallPath path = call_path(story.history(), story, story.calls(), 9, 9);
  ASSERT_EQ(path.frames.size(), 3u);
  EXPECT_EQ(path.frames[1].function->name, "f");
  EXPECT_EQ(path.frames[2].function->name, "main");
  EXPECT_FALSE(path.frames[2].event);
}

}  // namespace
}  // namespace tailtrace
