// A recursion a million calls deep, and back: whatever follows calls does so without a stack of its
// own that grows with them, and in a time that does so no faster than they do.
#include <gtest/gtest.h>

#include "decoder/export/call_spans.h"
#include "decoder/export/chrome_trace.h"
#include "decoder/export/folded_stacks.h"
#include "decoder/export/html_page.h"
#include "decoder/export/perfetto_trace.h"
#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/call_path.h"
#include "decoder/history/loops.h"
#include "decoder/history/queries/stats.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kDepth = 1'000'000;

// 1000 jz 1007 | 1002 call 1000 | 1007 ret, entered at 1000 and left to 2000 nop
std::shared_ptr<const ThreadSnapshot> recursion() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("7405e8f9ffffffc3")));
  EXPECT_TRUE(image->add({0x2000}, *from_hex("9090")));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  snapshot->complete = true;
  auto& records = snapshot->records;
  records.reserve(2 * kDepth + 10);
  records.push_back({{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0});
  for (std::uint64_t depth = 0; depth < kDepth; ++depth)
    records.push_back({{0x1002}, {0x1000}, 0, 2, RecordKind::kCall, 0, 0});
  records.push_back({{0x1000}, {0x1007}, 0, 1, RecordKind::kConditional, 0, 0});
  for (std::uint64_t depth = 0; depth < kDepth; ++depth)
    records.push_back({{0x1007}, {0x1007}, 0, 1, RecordKind::kReturn, 0, 0});
  records.push_back({{0x1007}, {0x2000}, 0, 1, RecordKind::kReturn, 0, 0});
  records.push_back({{0x2001}, {}, 0, 1, RecordKind::kDisable, kFlagAsync, 0});
  return snapshot;
}

struct Names : Symbolizer {
  Function f{{0x1000}, {0x1008}, {0x1000}, "f", "f", "", "", "/bin/x"};
  Function rest{{0x1008}, {~0ull}, {0x2000}, "main", "main", "", "", "/bin/x"};
  const Function& function_at(Address at) override { return at < f.end ? f : rest; }
  std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }
};

class DeepRecursion : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    history_ = new History(recursion());
    names_ = new Names;
    auto calls = CallHistory::make(*history_, *names_, {1, history_->size()});
    ASSERT_TRUE(calls) << calls.error().to_string();
    calls_ = new CallHistory(std::move(*calls));
  }
  static void TearDownTestSuite() {
    delete calls_;
    delete names_;
    delete history_;
  }

  static inline History* history_ = nullptr;
  static inline Names* names_ = nullptr;
  static inline CallHistory* calls_ = nullptr;
};

TEST_F(DeepRecursion, IsFollowedToItsEndAndBack) {
  ASSERT_EQ(history_->size(), 2 * kDepth + 1 + kDepth + 1 + 1);
  // A segment for each call, one for each return, and that of who called.
  ASSERT_EQ(calls_->size(), 2 * kDepth + 2);
  EXPECT_EQ(calls_->at(calls_->size()).level, 0);
  EXPECT_EQ(calls_->at(1).level, 1);
  EXPECT_EQ(calls_->at(kDepth + 1).level, static_cast<std::int32_t>(kDepth) + 1);
  for (std::uint64_t n = 1; n <= kDepth; n += 9973) {
    EXPECT_EQ(calls_->at(n).later, 2 * kDepth + 2 - n);
    EXPECT_EQ(calls_->at(n + 1).caller, n);
  }
}

TEST_F(DeepRecursion, HasAPathAsLongAsIsAskedFor) {
  const std::uint64_t deepest = calls_->at(kDepth + 1).items.first;
  CallPath path = call_path(*history_, *names_, *calls_, deepest, 2 * kDepth);
  EXPECT_EQ(path.frames.size(), kDepth + 2);
  EXPECT_FALSE(path.cut);
  EXPECT_EQ(path.frames.back().function->name, "main");
  EXPECT_TRUE(call_path(*history_, *names_, *calls_, deepest, 10).cut);
}

TEST_F(DeepRecursion, IsListedInLinesOfAScreen) {
  std::uint64_t lines = 0;
  std::size_t longest_bytes = 0;
  list_calls(*history_, *calls_, *names_, {kDepth - 500, kDepth + 500}, {},
             [&](std::string_view line) {
               ++lines;
               longest_bytes = std::max(longest_bytes, line.size());
               return true;
             });
  EXPECT_EQ(lines, 1001u);
  EXPECT_LT(longest_bytes, 200u);
}

TEST_F(DeepRecursion, IsFoldedAndDrawnAsDeepAsThoseFormsGo) {
  std::vector<std::string> stacks;
  list_folded_stacks(*calls_, [&](std::string_view line) {
    stacks.emplace_back(line);
    return true;
  });
  // All deeper ones count for the deepest.
  ASSERT_EQ(stacks.size(), kMaxFoldedDepth);
  std::uint64_t sum = 0;
  for (const std::string& stack : stacks) sum += std::stoull(stack.substr(stack.rfind(' ')));
  EXPECT_EQ(sum, history_->size());
  EXPECT_EQ(call_spans(*calls_).size(), static_cast<std::size_t>(kMaxTimelineLevel));
  std::uint64_t chrome = 0, perfetto_bytes = 0, html_bytes = 1;
  list_chrome_trace(*calls_, {1, 1}, [&](std::string_view) { return ++chrome != 0; });
  EXPECT_GT(chrome, static_cast<std::uint64_t>(kMaxTimelineLevel));
  PerfettoTrace perfetto(
      [&](std::string_view bytes) { return (perfetto_bytes += bytes.size()) != 0; });
  perfetto.begin();
  perfetto.add(*calls_, {1, 1});
  EXPECT_GT(perfetto_bytes, 1000u);
  HtmlPage page([&](std::string_view line) { return (html_bytes += line.size()) != 0; });
  page.begin("recursion");
  page.add(*history_, *calls_, {}, *names_);
  page.end();
  EXPECT_GT(html_bytes, 10'000u);
}

TEST_F(DeepRecursion, IsCounted) {
  HistoryStats stats = make_stats(*history_, *names_, {1, history_->size()});
  ASSERT_EQ(stats.functions.size(), 2u);
  EXPECT_EQ(stats.functions[0].entries, kDepth + 1);
  EXPECT_EQ(stats.functions[0].instructions, history_->size() - 1);
  EXPECT_TRUE(find_loops(*history_, {1, history_->size()}).empty());
}

}  // namespace
}  // namespace tailtrace
