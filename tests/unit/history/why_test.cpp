#include "decoder/history/queries/why.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder/history/queries/flow_graph.h"
#include "decoder/history/runs.h"
#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

// A function of conditional jumps, jumps and returns at random, two to six bytes each.
struct RandomFunction {
  explicit RandomFunction(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::size_t count = 3 + random() % 14;
    std::vector<int> kinds;
    for (std::size_t i = 0; i < count; ++i) kinds.push_back(static_cast<int>(random() % 6));
    kinds.back() = 4;
    Address at = base;
    for (int kind : kinds) {
      addresses.push_back(at);
      at = at + (kind < 3 ? 6 : kind == 3 ? 5 : 1);
    }
    end = at;
    Bytes code;
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t target = random() % count;
      std::uint64_t next = i + 1 < count ? addresses[i + 1].value : end.value;
      auto rel = static_cast<std::uint32_t>(addresses[target].value - next);
      Bytes bytes = kinds[i] < 3 ? Bytes{0x0f, 0x84} : kinds[i] == 3 ? Bytes{0xe9} : Bytes{};
      if (kinds[i] <= 3)
        for (int b = 0; b < 4; ++b) bytes.push_back(static_cast<std::uint8_t>(rel >> (8 * b)));
      if (kinds[i] == 4) bytes = {0xc3};
      if (kinds[i] == 5) bytes = {0x90};
      code.insert(code.end(), bytes.begin(), bytes.end());
      std::vector<std::size_t> out;
      if (kinds[i] < 3 || kinds[i] == 5) out.push_back(i + 1);
      if (kinds[i] <= 3) out.push_back(target);
      ways.push_back(out);
    }
    EXPECT_TRUE(image.add(base, code));
  }

  // Whether a way leads from `from` to a return without passing `by`.
  bool can_leave_without(std::size_t from, std::size_t by) const {
    std::vector<bool> seen(ways.size());
    std::vector<std::size_t> open = {from};
    while (!open.empty()) {
      std::size_t at = open.back();
      open.pop_back();
      if (at == by || seen[at]) continue;
      seen[at] = true;
      if (ways[at].empty()) return true;
      open.insert(open.end(), ways[at].begin(), ways[at].end());
    }
    return false;
  }
  bool can_leave(std::size_t from) const { return can_leave_without(from, ways.size()); }

  Address base{0x1000}, end;
  std::vector<Address> addresses;
  std::vector<std::vector<std::size_t>> ways;  // none: a return
  CodeImage image;
};

FlowGraph::InstructionAt reading(CodeReader& code) {
  return [&code](Address address) { return code.at(address); };
}

TEST(FlowGraph, WhatMustBePassedIsWhatNoWayOutGoesAround) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    RandomFunction function(seed);
    CodeReader code(function.image);
    auto inside = [&](Address a) { return function.base <= a && a < function.end; };
    FlowGraph graph(reading(code), inside, function.addresses, {});
    bool all_leave = true;
    for (std::size_t i = 0; i < function.ways.size(); ++i)
      all_leave = all_leave && function.can_leave(i);
    if (!all_leave) continue;  // endless loops have ways out of the graph's own making
    for (std::size_t from = 0; from < function.ways.size(); ++from)
      for (std::size_t by = 0; by < function.ways.size(); ++by)
        EXPECT_EQ(graph.must_pass(function.addresses[from], function.addresses[by]),
                  !function.can_leave_without(from, by))
            << "seed " << seed << ": from " << from << " by " << by;
  }
}

TEST(FlowGraph, AnEndlessLoopHasAWayOutSomewhere) {
  CodeImage image;
  ASSERT_TRUE(image.add({0x1000}, *from_hex("9090ebfc")));  // nop nop jmp 1000
  CodeReader code(image);
  FlowGraph graph(reading(code), [](Address a) { return a < Address{0x1004}; }, {{0x1000}}, {});
  EXPECT_TRUE(graph.must_pass({0x1000}, {0x1001}));
  EXPECT_FALSE(graph.decides({0x1002}, {0x1000}, {0x9000}));
}

// 1000 cmp-less: jz 1008 | 1002 nop nop jmp 100a | 1008 nop nop | 100a loop 1000 | 100c call 1012
// 1011 ret | 1012 nop ret
TEST(Why, NamesWhatDecidedAndLeavesOutWhatDidNot) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("74069090eb0490909090e2f4e801000000c390c3")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->complete = true;
  std::vector<BranchRecord>& records = snapshot->records;
  records.push_back({{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0});
  for (int round = 0; round < 5; ++round) {
    if (round % 2 == 0) {
      records.push_back({{0x1000}, {0x1008}, 0, 1, RecordKind::kConditional, 0, 0});
      if (round < 4) records.push_back({{0x100a}, {0x1000}, 0, 3, RecordKind::kConditional, 0, 0});
    } else {
      records.push_back({{0x1004}, {0x100a}, 0, 4, RecordKind::kJump, 0, 0});
      records.push_back({{0x100a}, {0x1000}, 0, 1, RecordKind::kConditional, 0, 0});
    }
  }
  records.push_back({{0x100c}, {0x1012}, 0, 4, RecordKind::kCall, 0, 0});
  records.push_back({{0x1012}, {}, 0, 0, RecordKind::kDisable, kFlagAsync | kFlagSynthetic, 0});
  History history(snapshot);
  ASSERT_EQ(history.gaps(), 0u);

  struct Names : Symbolizer {
    Function loop{{0x1000}, {0x1012}, {0x1000}, "loop", "loop", "", "", ""};
    Function leaf{{0x1012}, {0x1014}, {0x1012}, "leaf", "leaf", "", "", ""};
    const Function& function_at(Address a) override { return a.value < 0x1012 ? loop : leaf; }
    std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }
  } names;

  // To the call nothing leads but the end of the loop, which had to come: neither the conditions
  // inside of it nor how often it went round decided.
  auto reasons = find_reasons(history, names, history.size(), 100);
  ASSERT_TRUE(reasons);
  EXPECT_TRUE(reasons->decisions.empty());
  EXPECT_EQ(reasons->end, Reasons::End::kBegin);

  // That a round's first half was executed was decided there, and that there was such a round by
  // the loop's branch, four times.
  std::uint64_t in_half = 0;
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); cursor.valid() && in_half == 0; cursor.prev())
    if (cursor.item().instruction.address.value == 0x1008) in_half = cursor.item().number;
  reasons = find_reasons(history, names, in_half, 100);
  ASSERT_TRUE(reasons);
  auto folded = fold_decisions(reasons->decisions);
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(reasons->decisions[0].address, Address{0x1000});
  EXPECT_TRUE(reasons->decisions[0].taken);
  EXPECT_EQ(folded[0].times, 1u);
  EXPECT_EQ(reasons->decisions[folded[1].first].address, Address{0x100a});
  EXPECT_EQ(folded[1].times, 4u);
}

bool is_one_of(InstructionClass kind, std::initializer_list<InstructionClass> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

TEST(Why, ChainsGoBackThroughBranchesThatWereExecutedAndEnd) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ToyRun run = ToyProgram(seed, 4, 5).run(seed, 3000, seed % 2 == 0);
    History history(run.snapshot);
    ToySymbols symbols;
    NoSymbols none;
    for (Symbolizer* names : {static_cast<Symbolizer*>(&symbols), static_cast<Symbolizer*>(&none)})
      for (std::uint64_t item : {history.size(), history.size() / 2, std::uint64_t{1}}) {
        auto reasons = find_reasons(history, *names, item, 1000);
        ASSERT_TRUE(reasons);
        std::uint64_t before = item;
        for (const Decision& decision : reasons->decisions) {
          ASSERT_LT(decision.item, before);
          before = decision.item + (decision.event ? 1 : 0);  // what it was behind may have decided
          EXPECT_EQ(run.executed[decision.item - 1], decision.address);
          if (decision.event.has_value()) continue;
          EXPECT_TRUE(is_one_of(decision.kind,
                                {InstructionClass::kConditional, InstructionClass::kIndirectJump,
                                 InstructionClass::kCall, InstructionClass::kIndirectCall,
                                 InstructionClass::kJump, InstructionClass::kReturn}) ||
                      names == &symbols);
        }
      }
  }
}

TEST(Why, StopsAtAGapAndSaysSo) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("90909090")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1002}, {0x1001}, 0, 2, RecordKind::kGap, kFlagAsync, 0},
                       {{0x1003}, {}, 0, 2, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  ASSERT_EQ(history.gaps(), 1u);
  NoSymbols symbols;
  auto reasons = find_reasons(history, symbols, history.size(), 10);
  ASSERT_TRUE(reasons);
  EXPECT_EQ(reasons->end, Reasons::End::kGap);
  EXPECT_EQ(reasons->end_item, 3u);
  reasons = find_reasons(history, symbols, 3, 10);
  ASSERT_TRUE(reasons);
  EXPECT_EQ(reasons->end, Reasons::End::kGap);
}

// f0: CALL f1. f1: JZ, NOP, NOP; a signal before the last. f2, the handler: CALL f3, RET. f4, which
// the kernel put below it: NOP, SYSCALL.
TEST(Why, WhatAHandlerReturnsToIsThereForTheSignal) {
  constexpr std::uint64_t kBase = ToyProgram::kBase.value, kF1 = kBase + 64, kF2 = kF1 + 64,
                          kF3 = kF2 + 64, kF4 = kF3 + 64;
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({kBase}, *from_hex("e83b000000")));
  ASSERT_TRUE(image->add({kF1}, *from_hex("7401909090")));
  ASSERT_TRUE(image->add({kF2}, *from_hex("e83b000000c3")));
  ASSERT_TRUE(image->add({kF3}, *from_hex("c3")));
  ASSERT_TRUE(image->add({kF4}, *from_hex("900f05")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {kBase}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{kBase}, {kF1}, 0, 1, RecordKind::kCall, 0, 0},
                       {{kF1}, {kF1 + 3}, 0, 1, RecordKind::kConditional, 0, 0},
                       {{kF1 + 4}, {kF2}, 0, 1, RecordKind::kSignal, kFlagAsync, 11},
                       {{kF2}, {kF3}, 0, 1, RecordKind::kCall, 0, 0},
                       {{kF3}, {kF2 + 5}, 0, 1, RecordKind::kReturn, 0, 0},
                       {{kF2 + 5}, {kF4}, 0, 1, RecordKind::kReturn, 0, 0},
                       {{kF4 + 1}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  ASSERT_EQ(history.size(), 7u);
  ToySymbols symbols;
  auto reasons = find_reasons(history, symbols, history.size(), 10);
  ASSERT_TRUE(reasons);
  std::vector<std::uint64_t> items;
  for (const Decision& decision : reasons->decisions) items.push_back(decision.item);
  // Behind what was interrupted, and by what led there.
  ASSERT_EQ(items, (std::vector<std::uint64_t>{3, 1}));
  ASSERT_TRUE(reasons->decisions[0].event);
  EXPECT_EQ(reasons->decisions[0].event->kind, RecordKind::kSignal);
  EXPECT_EQ(reasons->decisions[1].kind, InstructionClass::kCall);
  EXPECT_EQ(reasons->end, Reasons::End::kBegin);
}

// f0: CALL f1, NOP, JZ, NOP. f1: NOP, a signal, RET. f2, the handler: JMP f3. f3: RET. f4, which
// the kernel put below it: SYSCALL, back to what was interrupted or somewhere else.
std::shared_ptr<ThreadSnapshot> handler_that_jumps(bool comes_back) {
  constexpr std::uint64_t kBase = ToyProgram::kBase.value, kF1 = kBase + 64, kF2 = kF1 + 64,
                          kF3 = kF2 + 64, kF4 = kF3 + 64, kF5 = kF4 + 64;
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({kBase}, *from_hex("e83b00000090740190")));
  EXPECT_TRUE(image->add({kF1}, *from_hex("90c3")));
  EXPECT_TRUE(image->add({kF2}, *from_hex("e93b000000")));
  EXPECT_TRUE(image->add({kF3}, *from_hex("c3")));
  EXPECT_TRUE(image->add({kF4}, *from_hex("0f05")));
  EXPECT_TRUE(image->add({kF5}, *from_hex("9090")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {kBase}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{kBase}, {kF1}, 0, 1, RecordKind::kCall, 0, 0},
                       {{kF1 + 1}, {kF2}, 0, 1, RecordKind::kSignal, kFlagAsync, 10},
                       {{kF2}, {kF3}, 0, 1, RecordKind::kJump, 0, 0},
                       {{kF3}, {kF4}, 0, 1, RecordKind::kReturn, 0, 0}};
  const Address back{comes_back ? kF1 + 1 : kF5};
  snapshot->records.push_back({{kF4}, back, 0, 1, RecordKind::kSystemReturn, 0, 0});
  if (comes_back) {
    snapshot->records.push_back({{kF1 + 1}, {kBase + 5}, 0, 1, RecordKind::kReturn, 0, 0});
    snapshot->records.push_back({{kBase + 6}, {kBase + 9}, 0, 2, RecordKind::kConditional, 0, 0});
  } else {
    snapshot->records.push_back({{kF5 + 1}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0});
  }
  return snapshot;
}

std::vector<std::uint64_t> deciding_items(const History& history) {
  ToySymbols symbols;
  auto reasons = find_reasons(history, symbols, history.size(), 10);
  EXPECT_TRUE(reasons);
  EXPECT_EQ(reasons->end, Reasons::End::kBegin);
  std::vector<std::uint64_t> items;
  for (const Decision& decision : reasons->decisions) items.push_back(decision.item);
  return items;
}

TEST(Why, AHandlerThatCameBackToWhatItInterruptedDecidedNothing) {
  History history(handler_that_jumps(true));
  ASSERT_EQ(history.size(), 8u);
  EXPECT_EQ(deciding_items(history), (std::vector<std::uint64_t>{}));
}

TEST(Why, AHandlerThatWentElsewhereDecided) {
  History history(handler_that_jumps(false));
  ASSERT_EQ(history.size(), 6u);
  // Its system call, the signal behind the NOP, and the call of what that interrupted.
  EXPECT_EQ(deciding_items(history), (std::vector<std::uint64_t>{5, 2, 1}));
}

// Of one function and its unlikely part elsewhere. 1000 jz 2000 | 1002 ret. 2000 nop nop
TEST(Why, ABranchToAPartElsewhereOfTheSameFunctionDecides) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("0f84fa0f0000c3")));
  ASSERT_TRUE(image->add({0x2000}, *from_hex("9090")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->complete = true;
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1000}, {0x2000}, 0, 1, RecordKind::kConditional, 0, 0},
                       {{0x2001}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0}};
  struct Names : Symbolizer {
    Function likely{{0x1000}, {0x1007}, {0x1000}, "f", "f", "f", "f.c", ""};
    Function unlikely{{0x2000}, {0x2002}, {0x1000}, "f", "f.cold", "f", "f.c", ""};
    const Function& function_at(Address a) override { return a.value < 0x2000 ? likely : unlikely; }
    std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }
  } names;
  History history(snapshot);
  ASSERT_EQ(history.size(), 2u);
  auto reasons = find_reasons(history, names, 2, 10);
  ASSERT_TRUE(reasons);
  ASSERT_EQ(reasons->decisions.size(), 1u);
  EXPECT_EQ(reasons->decisions[0].address, Address{0x1000});
  EXPECT_TRUE(reasons->decisions[0].taken);
}

// f0: NOP, JZ over a NOP, NOP, CALL f1. f1: NOP, RET. Where the thread stands behind `records`.
Reasons reasons_of_stop(std::vector<BranchRecord> records, Address stop) {
  constexpr std::uint64_t kBase = ToyProgram::kBase.value;
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({kBase}, *from_hex("9074019090e83600000090")));
  EXPECT_TRUE(image->add({kBase + 64}, *from_hex("90c3")));
  EXPECT_TRUE(image->add({kBase + 128}, *from_hex("9090")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {kBase}, 0, 0, RecordKind::kEnable, 0, 0}};
  snapshot->records.insert(snapshot->records.end(), records.begin(), records.end());
  snapshot->records.push_back({stop, {}, 0, 0, RecordKind::kDisable, kFlagAsync, 0});
  History history(snapshot);
  EXPECT_EQ(history.stop(), stop);
  ToySymbols symbols;
  auto reasons = find_reasons(history, symbols, history.newest() + 1, 10);
  EXPECT_TRUE(reasons);
  EXPECT_EQ(reasons->item, history.newest() + 1);
  return *reasons;
}

TEST(Why, ItStandsBehindItsLastBranchForThatBranch) {
  const Address base = ToyProgram::kBase;
  Reasons taken =
      reasons_of_stop({{base + 1, base + 4, 0, 2, RecordKind::kConditional, 0, 0}}, base + 4);
  EXPECT_TRUE(taken.decisions.empty());  // both ways lead there
  Reasons called = reasons_of_stop({{base + 1, base + 4, 0, 2, RecordKind::kConditional, 0, 0},
                                    {base + 5, base + 64, 0, 2, RecordKind::kCall, 0, 0}},
                                   base + 64);
  ASSERT_EQ(called.decisions.size(), 1u);
  EXPECT_EQ(called.decisions[0].address, base + 5);
  Reasons returned = reasons_of_stop({{base + 1, base + 4, 0, 2, RecordKind::kConditional, 0, 0},
                                      {base + 5, base + 64, 0, 2, RecordKind::kCall, 0, 0},
                                      {base + 65, base + 10, 0, 2, RecordKind::kReturn, 0, 0}},
                                     base + 10);
  EXPECT_TRUE(returned.decisions.empty());
  Reasons signalled =
      reasons_of_stop({{base + 1, base + 4, 0, 2, RecordKind::kConditional, 0, 0},
                       {base + 5, base + 64, 0, 2, RecordKind::kCall, 0, 0},
                       {base + 64, base + 128, 0, 0, RecordKind::kSignal, kFlagAsync, 11}},
                      base + 128);
  ASSERT_EQ(signalled.decisions.size(), 2u);  // the signal, and the call of what it interrupted
  EXPECT_TRUE(signalled.decisions[0].event);
  EXPECT_EQ(signalled.decisions[1].address, base + 5);
}

TEST(Why, CodeThatChangedWhereItStandsLedNowhere) {
  const Address base = ToyProgram::kBase, stop = base + 64;
  Reasons called = reasons_of_stop({{base + 1, base + 4, 0, 2, RecordKind::kConditional, 0, 0},
                                    {base + 5, stop, 0, 2, RecordKind::kCall, 0, 0},
                                    {stop, stop, 0, 0, RecordKind::kCodeChange, kFlagAsync, 1}},
                                   stop);
  ASSERT_EQ(called.decisions.size(), 1u);
  EXPECT_FALSE(called.decisions[0].event);
}

TEST(Why, ABranchNotTakenDecidesWhereItStands) {
  // 1000 jz 1003 | 1002 hlt | 1003 ret
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("7401f4c3")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1002}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  ASSERT_EQ(history.size(), 1u);
  NoSymbols symbols;
  auto of_stop = find_reasons(history, symbols, 2, 10);
  ASSERT_TRUE(of_stop);
  ASSERT_EQ(of_stop->decisions.size(), 1u);
  EXPECT_EQ(of_stop->decisions[0].item, 1u);
  EXPECT_FALSE(of_stop->decisions[0].taken);
  auto of_newest = find_reasons(history, symbols, 1, 10);
  ASSERT_TRUE(of_newest);
  EXPECT_TRUE(of_newest->decisions.empty());
}

// Nothing stands anywhere behind a history that does not say where.
TEST(Why, IsOfTheNewestItemWhereNobodyKnowsWhereItStands) {
  ToyRun run = ToyProgram(3, 4, 5).run(3, 300, false);
  run.snapshot->records.push_back({{}, {}, 0, 0, RecordKind::kGap, kFlagAsync, 0});
  History history(run.snapshot);
  ToySymbols symbols;
  auto reasons = find_reasons(history, symbols, history.newest() + 1, 10);
  ASSERT_TRUE(reasons);
  EXPECT_EQ(reasons->item, history.newest());
}

Decision decision_at(std::uint64_t address) {
  Decision decision;
  decision.address = {address};
  return decision;
}

TEST(Why, RoundsOfSeveralDecisionsAreFolded) {
  std::vector<Decision> decisions;
  for (int round = 0; round < 1000; ++round)
    for (std::uint64_t address : {1, 2, 2}) decisions.push_back(decision_at(address));
  decisions.push_back(decision_at(7));
  auto folded = fold_decisions(decisions);
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_EQ(folded[0].count, 3u);
  EXPECT_EQ(folded[0].times, 1000u);
  EXPECT_EQ(folded[1].times, 1u);
  EXPECT_TRUE(fold_decisions({}).empty());
}

// A million calls deep, each of the function by itself.
TEST(Why, ARecursionAMillionDeepIsOneLine) {
  auto image = std::make_shared<CodeImage>();
  // 1000 jz 1007 | 1002 call 1000 | 1007 ret
  ASSERT_TRUE(image->add({0x1000}, *from_hex("7405e8f9ffffffc3")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->complete = true;
  snapshot->records.push_back({{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0});
  for (int depth = 0; depth < 1000000; ++depth)
    snapshot->records.push_back({{0x1002}, {0x1000}, 0, 2, RecordKind::kCall, 0, 0});
  snapshot->records.push_back({{0x1000}, {0x1007}, 0, 1, RecordKind::kConditional, 0, 0});
  snapshot->records.push_back({{0x1007}, {}, 0, 0, RecordKind::kDisable, kFlagAsync, 0});
  History history(snapshot);
  ASSERT_EQ(history.size(), 2000001u);
  struct Names : Symbolizer {
    Function f{{0x1000}, {0x1008}, {0x1000}, "f", "f", "", "", ""};
    const Function& function_at(Address) override { return f; }
    std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }
  } names;
  auto reasons = find_reasons(history, names, history.size(), 100000);
  ASSERT_TRUE(reasons);
  EXPECT_EQ(reasons->end, Reasons::End::kLimit);
  auto folded = fold_decisions(reasons->decisions);
  ASSERT_EQ(folded.size(), 1u);
  EXPECT_EQ(folded[0].count, 2u);  // the call, and the condition before it
  EXPECT_EQ(folded[0].times, 50000u);
}

}  // namespace
}  // namespace tailtrace
