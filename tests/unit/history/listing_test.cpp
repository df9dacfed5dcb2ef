#include "decoder/history/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "decoder/history/calls/call_listing.h"

namespace tailtrace {
namespace {

// main: 1000 nop | 1001 jz 1005 | 1003 jmp 1008 | 1005 nop nop nop | 1008 call 1010 | 100d ret
// leaf: 1010 nop | 1011 ret
class TwoFunctions : public Symbolizer {
 public:
  const Function& function_at(Address address) override {
    if (address.value >= 0x1000 && address.value < 0x1010) return main_;
    if (address.value >= 0x1010 && address.value < 0x1012) return leaf_;
    return none_;
  }
  std::optional<SourceLine> line_at(Address address, Epoch) override {
    if (address.value >= 0x1010 && address.value < 0x1012) return std::nullopt;
    if (address.value < 0x1000 || address.value >= 0x1010) return std::nullopt;
    return SourceLine{"/src/main.cc", address.value < 0x1008 ? 7u : 8u};
  }

 private:
  Function main_{{0x1000}, {0x1010}, {0x1000}, "main()", "main", "", "", "/bin/program"};
  Function leaf_{{0x1010}, {0x1012}, {0x1010}, "leaf", "leaf", "", "", "/bin/program"};
  Function none_;
};

History small_history() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("907402eb03909090e803000000c3060690c3")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {
      {{}, {0x1000}, 5, 0, RecordKind::kEnable, 0, 0},
      {{0x1003}, {0x1008}, 6, 3, RecordKind::kJump, 0, 0},
      {{0x1008}, {0x1010}, 7, 1, RecordKind::kCall, 0, 0},
      {{0x1011}, {0x100d}, 8, 2, RecordKind::kReturn, 0, 0},
      {{0x100d}, {0x1001}, 9, 0, RecordKind::kSignal, kFlagAsync, 11},
      {{0x1001}, {0x1005}, 10, 1, RecordKind::kConditional, 0, 0},
      {{0x1008}, {0x9000}, 11, 3, RecordKind::kSignal, kFlagAsync, 0},
      {{0x9010}, {0x1010}, 12, 4, RecordKind::kReturn, 0, 0},
      {{0x1011}, {}, 0, 1, RecordKind::kDisable, kFlagAsync | kFlagSynthetic, 0},
  };
  return History(snapshot);
}

std::string listed(Range range, const ListingOptions& options = {}) {
  History history = small_history();
  TwoFunctions symbols;
  return instructions_text(history, symbols, range, options, 1 << 20);
}

TEST(Listing, ShowsHeadersWhereTheyChangeAndGapsAndEventsOnLinesOfTheirOwn) {
  EXPECT_EQ(listed({1, 12}),
            "  main.cc:7  main()\n"
            "    [-12]  nop\n"
            "    [-11]  jz    0x1005 <main()+0x5>            not taken\n"
            "    [-10]  jmp   0x1008 <main()+0x8>\n"
            "    [-9]   call  0x1010 <leaf>\n"
            "  program  leaf\n"
            "    [-8]   nop\n"
            "    [-7]   ret                                  -> 0x100d <main()+0xd>\n"
            "  -- signal 11 at 0x100d <main()+0xd> --\n"
            "  main.cc:7  main()\n"
            "    [-6]   jz    0x1005 <main()+0x5>            taken\n"
            "    [-5]   nop\n"
            "    [-4]   nop\n"
            "    [-3]   nop\n"
            "  -- gap [-2]: 4 instructions not shown: the code at 0x9000 is not known --\n"
            "  program  leaf\n"
            "    [-1]   nop\n");
}

TEST(Listing, CountsForwardAndShowsAddressesBytesAndLinesWhenAsked) {
  EXPECT_EQ(listed({2, 4}, {false, true, true, true}),
            "  main.cc:7  main()\n"
            "    [2]  0x1001  7402                   jz    0x1005 <main()+0x5>  not taken\n"
            "    [3]  0x1003  eb03                   jmp   0x1008 <main()+0x8>\n"
            "  main.cc:8  main()\n"
            "    [4]  0x1008  e803000000             call  0x1010 <leaf>\n");
}

TEST(Listing, IsCutWhereItIsTooLongAndSaysSo) {
  History history = small_history();
  TwoFunctions symbols;
  std::string text = instructions_text(history, symbols, {1, 12}, {}, 60);
  EXPECT_EQ(text,
            "  main.cc:7  main()\n"
            "    [-12]  nop\n"
            "  -- the listing is cut here: ask for a smaller range --\n");
}

TEST(Listing, WorksWithoutAnyNames) {
  History history = small_history();
  NoSymbols symbols;
  EXPECT_EQ(instructions_text(history, symbols, {1, 2}, {}, 1 << 20),
            "  (no symbol)\n"
            "    [-12]  nop\n"
            "    [-11]  jz    0x1005                         not taken\n");
}

class StrippedFile : public NoSymbols {
 public:
  const Function& function_at(Address) override { return nameless_; }
  std::optional<std::uint64_t> address_in_file(Address address, Epoch) override {
    return address.value - 0xc00;
  }

 private:
  Function nameless_{{}, {~0ull}, {}, {}, {}, {}, {}, "/usr/lib/libffi.so.8"};
};

TEST(Listing, SaysWhereInItsFileCodeWithoutNamesIs) {
  History history = small_history();
  StrippedFile symbols;
  EXPECT_EQ(instructions_text(history, symbols, {1, 2}, {}, 1 << 20),
            "  libffi.so.8+0x400  (no symbol)\n"
            "    [-12]  nop\n"
            "    [-11]  jz    0x1005 <libffi.so.8+0x405>     not taken\n");
}

std::vector<nlohmann::json> json_items(Range range) {
  History history = small_history();
  TwoFunctions symbols;
  std::vector<nlohmann::json> items;
  list_instructions_json(history, symbols, range, [&](std::string_view line) {
    items.push_back(nlohmann::json::parse(line));
    return true;
  });
  return items;
}

TEST(Listing, AsJsonNeedsNoSymbols) {
  History history = small_history();
  NoSymbols symbols;
  std::vector<std::string> lines;
  list_instructions_json(history, symbols, {1, 1}, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  ASSERT_EQ(lines.size(), 1u);
  nlohmann::json item = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(item["address"], "0x1000");
  EXPECT_FALSE(item.contains("function"));
}

TEST(Listing, AsJsonCarriesTheSame) {
  std::vector<nlohmann::json> items = json_items({1, 12});
  ASSERT_EQ(items.size(), 12u);
  const nlohmann::json second = {
      {"number", 2},     {"position", -11},          {"address", "0x1001"},
      {"bytes", "7402"}, {"text", "jz 0x1005"},      {"function", "main()"},
      {"offset", "0x1"}, {"module", "/bin/program"}, {"file", "/src/main.cc"},
      {"line", 7},       {"taken", false},           {"time", 5}};
  EXPECT_EQ(items[1], second);
  EXPECT_EQ(items[5]["to"], "0x100d");
  EXPECT_EQ(items[5]["branch"], "return");
  EXPECT_EQ(items[6]["taken"], true);
  EXPECT_EQ(items[6]["events"].dump(), "[{\"at\":\"0x100d\",\"code\":11,\"event\":\"signal\"}]");
  EXPECT_EQ(items[10]["gap"], "no-code");
  EXPECT_EQ(items[10]["lost"], 4);
  EXPECT_FALSE(items[11].contains("file"));
}

TEST(Listing, AsJsonTellsTheCodeOfItsTime) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("90ebfd")));        // nop | jmp 1000
  ASSERT_TRUE(image->add({0x1000}, *from_hex("f4"), Epoch{1}));  // hlt
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->records = {{{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
                       {{0x1001}, {0x1000}, 0, 2, RecordKind::kJump, 0, 0},
                       {{0x1001}, {0x1000}, 0, 2, RecordKind::kJump, 0, 0},
                       {{0x1000}, {0x1000}, 0, 0, RecordKind::kCodeChange, kFlagAsync, 1},
                       {{0x1001}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0}};
  History history(snapshot);
  NoSymbols symbols;
  std::string texts;
  list_instructions_json(history, symbols, {1, history.size()}, [&](std::string_view line) {
    texts += nlohmann::json::parse(line)["text"].get<std::string>() + "; ";
    return true;
  });
  EXPECT_EQ(texts, "nop; jmp 0x1000; nop; jmp 0x1000; hlt; ");
}

TEST(Listing, StopsWhenItsReaderHasEnough) {
  History history = small_history();
  TwoFunctions symbols;
  int lines = 0;
  auto one = [&](std::string_view) { return ++lines < 3; };
  list_instructions(history, symbols, {1, 12}, {}, one);
  EXPECT_EQ(lines, 3);
  lines = 0;
  list_instructions_json(history, symbols, {1, 12}, one);
  EXPECT_EQ(lines, 3);
}

std::string calls_listed(const CallListingOptions& options) {
  History history = small_history();
  TwoFunctions symbols;
  auto calls = CallHistory::make(history, symbols, {1, history.size()});
  EXPECT_TRUE(calls);
  return calls_text(history, *calls, symbols, {1, calls->size()}, options, 1 << 20);
}

TEST(CallListing, IndentsByLevelAndShowsLinesAndItems) {
  EXPECT_EQ(calls_listed({}),
            "    [-5]  main()                          main.cc:7-8     [-12,-9]\n"
            "    [-4]    leaf                                          [-8,-7]\n"
            "    [-3]  main()                          main.cc:7       [-6,-3]\n"
            "    [-2]  -- gap: 4 instructions not shown: the code at 0x9000 is not known --\n"
            "    [-1]  leaf                                            [-1,-1]\n");
}

TEST(CallListing, ShowsLessWhenLessIsAskedFor) {
  EXPECT_EQ(calls_listed({false, false, false, false}),
            "    [1]  main()\n"
            "    [2]  leaf\n"
            "    [3]  main()\n"
            "    [4]  -- gap: 4 instructions not shown: the code at 0x9000 is not known --\n"
            "    [5]  leaf\n");
}

TEST(CallListing, ShowsTheOutermostLevelsAndAllGaps) {
  CallListingOptions options{true, true, false, false};
  options.depth = 1;
  EXPECT_EQ(calls_listed(options),
            "    [-5]  main()\n"
            "    [-3]  main()\n"
            "    [-2]  -- gap: 4 instructions not shown: the code at 0x9000 is not known --\n"
            "    [-1]  leaf\n");
  options.depth = 2;
  EXPECT_THAT(calls_listed(options), testing::HasSubstr("\n    [-4]    leaf\n"));
}

TEST(CallListing, AsJsonCarriesTheSame) {
  History history = small_history();
  TwoFunctions symbols;
  auto calls = CallHistory::make(history, symbols, {1, history.size()});
  ASSERT_TRUE(calls);
  std::vector<std::string> lines;
  list_calls_json(history, *calls, symbols, {1, calls->size()}, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0],
            "{\"number\":1,\"position\":-5,\"function\":\"main()\",\"module\":\"/bin/program\","
            "\"file\":\"/src/main.cc\",\"first_line\":7,\"last_line\":8,\"level\":0,\"first\":1,"
            "\"last\":4,\"later\":3,\"time\":5}");
  EXPECT_EQ(lines[1],
            "{\"number\":2,\"position\":-4,\"function\":\"leaf\",\"module\":\"/bin/program\","
            "\"level\":1,\"first\":5,\"last\":6,\"caller\":1,\"time\":7}");
  EXPECT_EQ(nlohmann::json::parse(lines[3])["gap"], "no-code");
}

}  // namespace
}  // namespace tailtrace
