#include "plugin/server/monitor/history_answers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/toy_program.h"
#include "tests/support/toy_symbols.h"

namespace tailtrace {
namespace {

using Text = HistoryAnswers::Text;

std::unique_ptr<HistoryAnswers> answers_of(Part part) {
  return std::make_unique<HistoryAnswers>(ToyProgram(3, 4, 5).run(3, 5000, false).snapshot,
                                          std::make_unique<ToySymbols>(),
                                          HistoryAnswers::Facts{"toy", {4711}, part});
}

Text answer(HistoryAnswers& answers, std::string_view words) {
  CommandWords left{words};
  const HistoryAnswers::Command* command = HistoryAnswers::command_named(left.word());
  return command == nullptr ? Text("no such command") : answers.answer(*command, left.rest);
}

std::string behind_the_head(const Text& text) {
  if (!text) return "not enough";
  return text->substr(text->find('\n') + 1);
}

TEST(HistoryAnswers, OfTheNewestPartAreThoseOfAll) {
  auto all = answers_of(Part::kAll), newest = answers_of(Part::kNewest);
  for (const char* words :
       {"items -1 0", "items -50 50", "items -5000 10", "records -10 10", "loops -300 300",
        "find 3 0x400000 0x400001 0x400002 0x400003 0x400004", "hits 2 f0"}) {
    const Text text = answer(*newest, words);
    ASSERT_TRUE(text) << words;
    EXPECT_FALSE(text->starts_with("error: ")) << words << ": " << *text;
    EXPECT_EQ(behind_the_head(text), behind_the_head(answer(*all, words))) << words;
  }
}

TEST(HistoryAnswers, AreNoneWhereThatMayHoldTooLittle) {
  auto all = answers_of(Part::kAll), newest = answers_of(Part::kNewest);
  for (const char* words : {"items -5001 10", "items 1 1", "records -100000 1", "records 1 1",
                            "loops 1 300", "find 10000 0x400000", "hits 10000 f0", "why 1 1",
                            "why -1 1", "calls -1 1", "calls 1 1", "call-tree 5 100 0"}) {
    EXPECT_FALSE(answer(*newest, words)) << words;
    EXPECT_TRUE(answer(*all, words)) << words;
  }
}

TEST(HistoryAnswers, OfTheNewestPartSayNothingOfTheSize) {
  auto all = answers_of(Part::kAll), newest = answers_of(Part::kNewest);
  EXPECT_NE(answer(*all, "items -1 0")->find("\"size\":5000"), std::string::npos);
  EXPECT_EQ(answer(*newest, "items -1 0")->find("size"), std::string::npos);
  EXPECT_EQ(answer(*newest, "items -1 0")->find("complete"), std::string::npos);
}

TEST(HistoryAnswers, PagesOfInstructionsGoOnFromTheNewestPartIntoAll) {
  auto all = answers_of(Part::kAll), newest = answers_of(Part::kNewest);
  const Text page = answer(*newest, "instruction-history -20,+3");
  ASSERT_TRUE(page);
  EXPECT_EQ(page, answer(*all, "instruction-history -20,+3"));
  EXPECT_EQ(answer(*newest, "instruction-history -"), answer(*all, "instruction-history -"));
  EXPECT_EQ(answer(*newest, "instruction-history"), answer(*all, "instruction-history"));
  answer(*newest, "instruction-history -4990,+1");
  // It is said where older ones begin only of all.
  for (const char* words : {"-5000,+1", "1,3", "all", "nonsense"})
    EXPECT_FALSE(answer(*newest, std::string("instruction-history ") + words)) << words;
  auto later = answers_of(Part::kAll);
  later->go_on_from(*newest);
  EXPECT_NE(
      later->answer(*HistoryAnswers::command_named("instruction-history"), "-")->find("[-5000]"),
      std::string::npos);
}

// A function that is called by another for ever; of the calls more are kept than are short.
std::shared_ptr<const ThreadSnapshot> long_snapshot() {
  const Address call = ToyProgram::kBase, jump = call + 5, callee = call + 64;
  auto snapshot = std::make_shared<ThreadSnapshot>();
  auto code = std::make_shared<CodeImage>();
  EXPECT_TRUE(code->add(call, Bytes{0xe8, 59, 0, 0, 0, 0xeb, 0xf9}));  // call callee; jmp call
  EXPECT_TRUE(code->add(callee, Bytes{0xc3}));
  snapshot->code = code;
  snapshot->records = {{{}, call, 0, 0, RecordKind::kEnable, 0, 0}};
  while (snapshot->records.size() < kNewestPart_records + 1000) {
    snapshot->records.push_back({call, callee, 0, 1, RecordKind::kCall, 0, 0});
    snapshot->records.push_back({callee, jump, 0, 1, RecordKind::kReturn, 0, 0});
    snapshot->records.push_back({jump, call, 0, 1, RecordKind::kJump, 0, 0});
  }
  snapshot->records.push_back({call, {}, 0, 0, RecordKind::kDisable, kFlagSynthetic, 0});
  return snapshot;
}

TEST(HistoryAnswers, PagesOfCallsGoOnFromTheNewestPartIntoAll) {
  const auto snapshot = long_snapshot();
  auto newest_part = std::make_shared<ThreadSnapshot>(*snapshot);
  keep_newest(*newest_part, kNewestPart_records);
  HistoryAnswers all(snapshot, std::make_unique<ToySymbols>(), {"toy", {1}, Part::kAll});
  HistoryAnswers newest(newest_part, std::make_unique<ToySymbols>(), {"toy", {1}, Part::kNewest});
  for (const char* words : {"-20,+3", "-", "-", "", "-30000,+2", "-", ""}) {
    const std::string command = std::string("function-call-history ") + words;
    const Text page = answer(newest, command);
    ASSERT_TRUE(page) << words;
    EXPECT_EQ(page, answer(all, command)) << words;
  }
  for (const char* words : {"calls -30000 3", "call-tree 2 20000 0"})
    EXPECT_EQ(behind_the_head(answer(newest, words)), behind_the_head(answer(all, words))) << words;
  EXPECT_FALSE(answer(newest, "function-call-history 1,2"));
  EXPECT_FALSE(answer(newest, "call-tree 2 " + std::to_string(kNewestPart_records) + " 0"));
  // The oldest call may be cut, so it is not enough.
  std::uint64_t held = kNewestPart_records - 100;  // each record is a call here
  while (answer(newest, fmt::format("calls -{} 1", held))) ++held;
  ASSERT_TRUE(answer(newest, fmt::format("function-call-history -{},+1", held - 1)));
  EXPECT_FALSE(answer(newest, "function-call-history -"));
  all.go_on_from(newest);
  const Text older = answer(all, "function-call-history -");
  EXPECT_EQ(older, answer(all, fmt::format("function-call-history -{},+10", held + 9)));
}

TEST(HistoryAnswers, ACallTreeComesInPieces) {
  auto all = answers_of(Part::kAll);
  const std::string whole = behind_the_head(answer(*all, "call-tree 40 100000 0"));
  const std::string rest = behind_the_head(answer(*all, "call-tree 40 100000 7"));
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 40);
  EXPECT_EQ(std::count(rest.begin(), rest.end(), '\n'), 33);
  EXPECT_TRUE(whole.ends_with(rest));
  EXPECT_EQ(behind_the_head(answer(*all, "call-tree 40 100000 40")), "");
  EXPECT_EQ(behind_the_head(answer(*all, "call-tree 40 100000 9999999")), "");
}

TEST(HistoryAnswers, FoldedStacksComeInPiecesAndCountTheItemsThatAreAskedFor) {
  auto all = answers_of(Part::kAll);
  const std::string whole = behind_the_head(answer(*all, "export folded -1000 -301 0"));
  std::uint64_t counted = 0;
  for (std::size_t at = 0; (at = whole.find("\"\n", at)) != std::string::npos; ++at)
    counted += std::stoull(whole.substr(whole.rfind(' ', at)));
  EXPECT_EQ(counted, 700u);
  const std::string rest = behind_the_head(answer(*all, "export folded -1000 -301 1"));
  EXPECT_EQ(whole.substr(whole.find('\n') + 1), rest);
  EXPECT_NE(behind_the_head(answer(*all, "export folded -1000 -1 0")), whole);
  EXPECT_EQ(behind_the_head(answer(*all, "export folded -1000 -301 9999999")), "");
}

TEST(HistoryAnswers, WordsThatCannotBeReadAreToldHow) {
  auto all = answers_of(Part::kAll);
  for (const char* words : {"items",
                            "items x 1",
                            "call-tree",
                            "call-tree 1 2",
                            "call-tree 0 1 1",
                            "call-tree 1 0 1",
                            "whole-calls 1",
                            "find 1",
                            "hits 0 f0",
                            "why -1",
                            "items -2 2 junk",
                            "records -1 1 1",
                            "loops -9 9 x",
                            "calls -1 1 x",
                            "call-tree 1 1 1 1",
                            "counts 0 1 2",
                            "why -1 1 1",
                            "stack -1 1 x",
                            "frames -1 1 x",
                            "instruction-history /x",
                            "export folded -2 -1",
                            "export folded 0 -1 0",
                            "export gif -2 -1 0"})
    EXPECT_TRUE(answer(*all, words)->starts_with("error: cannot read the command")) << words;
  for (const char* words : {"instruction-history 1,2 junk", "function-call-history 1 2"})
    EXPECT_TRUE(answer(*all, words)->starts_with("error: cannot read the range")) << words;
  EXPECT_EQ(answer(*all, "instruction-history /f 5, +3"), answer(*all, "instruction-history 5,7"));
}

}  // namespace
}  // namespace tailtrace
