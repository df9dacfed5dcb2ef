#include "decoder/history/calls.h"

#include <gtest/gtest.h>

#include <map>

namespace tailtrace {
namespace {

// Functions of 64 KiB each, named by one word; writes code and records as it goes, so that a test
// reads as the story of what was executed.
class Story : public Symbolizer {
 public:
  explicit Story(std::vector<std::string> names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      Address begin{(i + 1) << 16};
      Function function{begin, begin + 0x10000, begin, names[i], names[i], "", "", "m"};
      functions_.push_back(std::make_unique<Function>(function));
      bases_[names[i]] = begin;
    }
    here_ = bases_.at(names[0]);
    push({{}, here_, 0, 0, RecordKind::kEnable, 0, 0});
  }

  // Every move executes one NOP and the branch itself.
  Story& call(const std::string& name) { return call_to(bases_.at(name)); }
  Story& call_next() { return call_to(here_ + 3); }
  Story& jump(const std::string& name, std::uint64_t offset = 0) {
    return move(RecordKind::kIndirectJump, "ffe0", bases_.at(name) + offset);
  }
  // To the caller, or to another place altogether.
  Story& ret() {
    Address to = stack_.back();
    stack_.pop_back();
    return move(RecordKind::kReturn, "c3", to);
  }
  Story& ret_to(const std::string& name, std::uint64_t offset) {
    return move(RecordKind::kReturn, "c3", bases_.at(name) + offset);
  }
  Story& signal(const std::string& name) {
    Address to = bases_.at(name);
    put("90");
    stack_.push_back(here_);
    push({here_, to, 0, 1, RecordKind::kSignal, kFlagAsync, 0});
    here_ = to;
    return *this;
  }
  // Nobody knows what happened until it is there again.
  Story& gap(const std::string& name, std::uint64_t offset) {
    here_ = bases_.at(name) + offset;
    push({{}, here_, 0, 0, RecordKind::kOverflow, 0, 0});
    return *this;
  }
  Story& without_entry(const std::string& name) {
    for (auto& function : functions_)
      if (function->name == name) function->entry = {};
    return *this;
  }

  // "main:0:1-2 f:1:3-4": name, level and items of every segment.
  std::string told() {
    put("90");
    push({here_, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0});
    auto snapshot = std::make_shared<ThreadSnapshot>();
    auto image = std::make_shared<CodeImage>();
    for (auto& [address, byte] : code_) EXPECT_TRUE(image->add(address, Bytes{byte}));
    snapshot->code = image;
    snapshot->records = records_;
    history_ = std::make_unique<History>(snapshot);
    return told({1, history_->size()});
  }
  std::string told(Range range) {
    auto made = CallHistory::make(*history_, *this, range);
    EXPECT_TRUE(made);
    calls_ = std::move(*made);
    std::string text;
    for (std::uint64_t n = 1; n <= calls_.size(); ++n) {
      CallSegment s = calls_.at(n);
      EXPECT_EQ(calls_.holding(s.items.first), n);
      EXPECT_EQ(calls_.holding(s.items.last), n);
      std::string name = s.function == nullptr ? "[gap]" : s.function->name;
      text += (n == 1 ? "" : " ") + name + ":" + std::to_string(s.level) + ":" +
              std::to_string(s.items.first) + "-" + std::to_string(s.items.last);
    }
    EXPECT_FALSE(calls_.holding(range.last + 1));
    return text;
  }
  const CallHistory& calls() const { return calls_; }

  const Function& function_at(Address address) override {
    std::size_t index = (address.value >> 16) - 1;
    return index < functions_.size() ? *functions_[index] : none_;
  }
  std::optional<SourceLine> line_at(Address) override { return std::nullopt; }

 private:
  Story& call_to(Address to) {
    stack_.push_back(here_ + 3);
    return move(RecordKind::kIndirectCall, "ffd0", to);
  }
  Story& move(RecordKind kind, const char* code, Address to) {
    put("90");
    Address from = here_;
    put(code);
    push({from, to, 0, 2, kind, 0, 0});
    here_ = to;
    return *this;
  }
  void put(const char* hex) {
    const Bytes bytes = *from_hex(hex);
    for (std::uint8_t byte : bytes) {
      code_[here_] = byte;
      here_ = here_ + 1;
    }
  }
  void push(const BranchRecord& record) { records_.push_back(record); }

  std::vector<std::unique_ptr<Function>> functions_;
  std::map<std::string, Address> bases_;
  Function none_;
  Address here_;
  std::vector<Address> stack_;
  std::map<Address, std::uint8_t> code_;
  std::vector<BranchRecord> records_;
  std::unique_ptr<History> history_;
  CallHistory calls_;
};

TEST(Calls, ComeAndGoInTheFunctionsThatCalled) {
  Story story({"main", "f", "g"});
  EXPECT_EQ(story.call("f").call("g").ret().ret().told(),
            "main:0:1-2 f:1:3-4 g:2:5-6 f:1:7-8 main:0:9-9");
  EXPECT_EQ(story.calls().at(3).caller, 2u);
  EXPECT_EQ(story.calls().at(4).earlier, 2u);
  EXPECT_EQ(story.calls().at(2).later, 4u);
  EXPECT_EQ(story.calls().at(4).caller, 1u);
  EXPECT_EQ(story.calls().at(1).later, 5u);
}

TEST(Calls, OfAFunctionByItselfAreLevelsOfTheirOwn) {
  Story story({"main", "f"});
  story.call("f").jump("f", 0x10).call("f").jump("f", 0x40);
  EXPECT_EQ(story.ret().ret().told(), "main:0:1-2 f:1:3-6 f:2:7-10 f:1:11-12 main:0:13-13");
}

TEST(Calls, ToTheNextInstructionAreNone) {
  EXPECT_EQ(Story({"main"}).call_next().told(), "main:0:1-3");
}

TEST(Calls, ThatJumpAreTailCallsAndReturnPastTheJumper) {
  Story story({"main", "f", "g"});
  EXPECT_EQ(story.call("f").jump("g").ret().told(), "main:0:1-2 f:1:3-4 g:2:5-6 main:0:7-7");
  EXPECT_TRUE(story.calls().at(3).tail_called);
  EXPECT_FALSE(story.calls().at(2).tail_called);
}

// A jump into the middle of another function is no call, unless nobody knows where it begins.
TEST(Calls, ThatJumpIntoAFunctionsMiddleOnlySwitch) {
  EXPECT_EQ(Story({"main", "f", "f.cold"}).call("f").jump("f.cold", 4).jump("f", 9).ret().told(),
            "main:0:1-2 f:1:3-4 f.cold:1:5-6 f:1:7-8 main:0:9-9");
  EXPECT_EQ(Story({"main", "f"}).without_entry("f").jump("f", 4).told(), "main:0:1-2 f:1:3-3");
}

TEST(Calls, ThatWereMadeBeforeTheRecordBeganGiveALevelFurtherOut) {
  EXPECT_EQ(Story({"g", "f", "main", "h"}).ret_to("f", 8).ret_to("main", 8).call("h").told(),
            "g:2:1-2 f:1:3-4 main:0:5-6 h:1:7-7");
}

TEST(Calls, ThatReturnElsewhereBeginAnotherStack) {
  // `switcher` was called, and returns into a function that nobody called.
  Story story({"main", "switcher", "other"});
  EXPECT_EQ(story.call("switcher").ret_to("other", 8).call("switcher").ret_to("main", 3).told(),
            "main:0:1-2 switcher:1:3-4 other:0:5-6 switcher:1:7-8 main:0:9-9");
}

TEST(Calls, ThroughTheLazyBinderAreTailCalls) {
  EXPECT_EQ(Story({"main", "plt", "_dl_runtime_resolve", "f"})
                .call("plt")
                .jump("_dl_runtime_resolve")
                .ret_to("f", 0)
                .ret()
                .told(),
            "main:0:1-2 plt:1:3-4 _dl_runtime_resolve:2:5-6 f:3:7-8 main:0:9-9");
}

TEST(Calls, ThatTheUnwinderLeavesByAJumpReturnToWhoCatches) {
  EXPECT_EQ(Story({"main", "f", "_Unwind_RaiseException"})
                .call("f")
                .call("_Unwind_RaiseException")
                .jump("main", 0x40)
                .told(),
            "main:0:1-2 f:1:3-4 _Unwind_RaiseException:2:5-6 main:0:7-7");
  // Any other function's jump does not.
  EXPECT_EQ(Story({"main", "f", "longjmp"}).call("f").call("longjmp").jump("main", 0x40).told(),
            "main:0:1-2 f:1:3-4 longjmp:2:5-6 main:2:7-7");
}

TEST(Calls, OfASignalHandlerAreASwitchAsGdbShowsIt) {
  EXPECT_EQ(Story({"main", "handler"}).signal("handler").ret().told(),
            "main:1:1-1 handler:1:2-3 main:0:4-4");
}

TEST(Calls, AreConnectedAcrossAGapWhereTheyMatch) {
  Story story({"main", "f", "g"});
  story.call("f").call("g").jump("g", 0x40).gap("g", 0x80);
  EXPECT_EQ(story.ret_to("f", 0x80).ret_to("main", 0x80).told(),
            "main:0:1-2 f:1:3-4 g:2:5-6 [gap]:2:7-7 g:2:8-9 f:1:10-11 main:0:12-12");
  EXPECT_EQ(story.calls().gaps(), 1u);
  // One function deeper than before.
  Story deeper({"main", "f", "g"});
  deeper.call("f").gap("g", 0x80).ret_to("f", 0x80).ret_to("main", 0x80);
  EXPECT_EQ(deeper.told(), "main:0:1-2 [gap]:0:3-3 g:2:4-5 f:1:6-7 main:0:8-8");
}

TEST(Calls, AreNotConnectedAcrossAGapWhereNothingMatches) {
  EXPECT_EQ(Story({"main", "f", "g", "h"}).call("f").gap("g", 0x80).call("h").told(),
            "main:0:1-2 [gap]:0:3-3 g:0:4-5 h:1:6-6");
}

TEST(Calls, OfAPartOfAHistoryAreNumberedFromItsBeginning) {
  Story story({"main", "f", "g"});
  story.call("f").call("g").ret().ret().told();
  EXPECT_EQ(story.told({4, 8}), "f:0:4-4 g:1:5-6 f:0:7-8");
  EXPECT_EQ(story.told({6, 6}), "g:0:6-6");
  EXPECT_EQ(story.told({1, 0}), "");
}

TEST(Calls, ThatAreVeryDeepAreFollowed) {
  Story story({"main", "f"});
  for (int i = 0; i < 20000; ++i) story.call("f").jump("f", i == 19999 ? 0x40 : 0x10);
  for (int i = 0; i < 20000; ++i) story.ret();
  std::string told = story.told();
  EXPECT_TRUE(told.starts_with("main:0:1-2 f:1:3-6 f:2:7-10 ")) << told.substr(0, 80);
  EXPECT_TRUE(told.ends_with(" f:1:119999-120000 main:0:120001-120001"))
      << told.substr(told.size() - 80);
}

}  // namespace
}  // namespace tailtrace
