// Recording without loss, and what is told when nobody drains the buffer; several who record the
// same thread.
#include "plugin/engines/perf/lossless.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/guest/config.h"
#include "tests/guest/shown.h"
#include "tests/guest/truth.h"
#include "tests/guest/workload.h"
#include "tests/support/child.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

class LosslessRecording : public testing::TestWithParam<Hardware> {
 protected:
  Lossless must_start(const Child& child, std::uint64_t buffer_bytes) {
    auto started = Lossless::start(real_kernel(), GetParam(), config_of(buffer_bytes),
                                   {child.pid(), child.pid()}, folder_.file("trace"));
    if (!started) throw std::runtime_error(started.error().to_string());
    return std::move(*started);
  }
  ThreadSnapshot must_show(Lossless& lossless, const Child& child) {
    auto snapshot = lossless.snapshot({child.registers().rip}, 1 << 20);
    EXPECT_TRUE(snapshot) << snapshot.error().to_string();
    return snapshot ? std::move(*snapshot) : ThreadSnapshot{};
  }
  TempFolder folder_;
};

// Many times the buffer's size, drained whenever there is something.
TEST_P(LosslessRecording, HasEverythingWhenItIsDrained) {
  const std::uint64_t buffer_bytes = GetParam() == Hardware::kPt ? 4096 : 65536;
  Child child({[] { work(700, {false, true}); }});
  reset_truth();
  Lossless lossless = must_start(child, buffer_bytes);
  ASSERT_EQ(::ptrace(PTRACE_CONT, child.pid(), nullptr, 0), 0);
  for (int status = 0; ::waitpid(child.pid(), &status, WNOHANG) == 0;) {
    ASSERT_TRUE(lossless.wait(1));
    auto drained = lossless.drain();
    ASSERT_TRUE(drained) << drained.error().to_string();
  }
  Shown shown = show(must_show(lossless, child));
  std::vector<Address> truth = read_truth();
  if (lossless.progress().holes != 0) {
    // One processor and two who want it: the buffer may run full before we run. Holes with no
    // instruction between them are one gap.
    EXPECT_TRUE(lossless.backpressure());
    EXPECT_LE(shown.breaks.size(), lossless.progress().holes);
    EXPECT_THAT(shown.reasons, testing::Each(GapReason::kTruncated));
    expect_stretches(shown, truth);
    return;
  }
  EXPECT_GT(lossless.progress().written_bytes, 2 * buffer_bytes);
  EXPECT_TRUE(shown.breaks.empty());
  EXPECT_EQ(shown.executed.size(), truth.size());
  EXPECT_TRUE(shown.executed == truth);
  std::printf("    %zu instructions, all exact; %lu bytes\n", truth.size(),
              static_cast<unsigned long>(lossless.progress().written_bytes));
}

// From stop to stop, so that nobody has to be fast: nothing may be missing.
TEST_P(LosslessRecording, GoesOnFromStopToStop) {
  std::vector<std::function<void()>> parts(8, [] { work(30, {false, true}); });
  Child child(parts);
  reset_truth();
  Lossless lossless = must_start(child, 1 << 20);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ASSERT_TRUE(child.run());
    ASSERT_TRUE(lossless.drain());
  }
  ThreadSnapshot snapshot = must_show(lossless, child);
  EXPECT_TRUE(snapshot.complete);
  Shown shown = show(snapshot);
  std::vector<Address> truth = read_truth();
  EXPECT_EQ(lossless.progress().holes, 0u);
  EXPECT_FALSE(lossless.backpressure());
  EXPECT_TRUE(shown.breaks.empty());
  EXPECT_EQ(shown.executed.size(), truth.size());
  EXPECT_TRUE(shown.executed == truth);
  std::printf("    %zu instructions, all exact\n", truth.size());
}

TEST_P(LosslessRecording, TellsOfABufferThatNobodyDrained) {
  Child child({[] { work(600, {false, true}); }, [] { work(1, {false, true}); }});
  reset_truth();
  Lossless lossless = must_start(child, 8192);
  ASSERT_TRUE(child.run());
  auto drained = lossless.drain();
  ASSERT_TRUE(drained) << drained.error().to_string();
  ASSERT_TRUE(child.run());
  Shown shown = show(must_show(lossless, child));
  ASSERT_GT(lossless.progress().holes, 0u);
  auto told = lossless.backpressure();
  ASSERT_TRUE(told);
  EXPECT_THAT(told->why, testing::HasSubstr("8 KiB"));
  ASSERT_FALSE(shown.breaks.empty());
  EXPECT_THAT(shown.reasons, testing::Each(GapReason::kTruncated));
  expect_stretches(shown, read_truth());
  ASSERT_FALSE(shown.executed.empty());
  EXPECT_EQ(shown.executed.back(), read_truth().back()) << "it went on behind the hole";
}

INSTANTIATE_TEST_SUITE_P(Hardware, LosslessRecording,
                         testing::Values(Hardware::kPt, Hardware::kBts), [](const auto& info) {
                           return info.param == Hardware::kPt ? "Pt" : "Bts";
                         });

// The kernel says nothing then, and switches the event off: the hole is told all the same, and
// recording goes on.
TEST(LosslessArea, ThatIsExactlyFullWhenTheThreadComesBack) {
  constexpr std::uint64_t kBuffer_bytes = 4096;
  ModuleParameter play("mode", "0"), chunk("play_chunk", std::to_string(kBuffer_bytes - 1));
  std::ofstream("/sys/kernel/debug/fakepmu/play_pt") << std::string(kBuffer_bytes, '\0');
  TempFolder folder;
  Child child({[] {}, [] {}, [] {}});
  auto lossless = Lossless::start(real_kernel(), Hardware::kPt, config_of(kBuffer_bytes),
                                  {child.pid(), child.pid()}, folder.file("trace"));
  ASSERT_TRUE(lossless) << lossless.error().to_string();
  ASSERT_TRUE(child.run());
  ASSERT_TRUE(child.run());
  EXPECT_EQ(*lossless->drain(), kBuffer_bytes - 1);
  EXPECT_EQ(lossless->progress().holes, 1u);
  EXPECT_TRUE(lossless->backpressure());
  ASSERT_TRUE(child.run());
  EXPECT_GT(*lossless->drain(), 0u) << "it was not switched on again";
}

// Counters are not exclusive: each consumer has its own event and a ring of its own size.
TEST(Consumers, OfBranchStacksAreIndependent) {
  Child child({[] { work(150, {false, true}); }});
  ThreadId thread{child.pid(), child.pid()};
  reset_truth();
  PerfConfig small = config_of(8192), large = config_of(1 << 20);
  small.lbr_period = large.lbr_period = 16;
  PerfEngine first(real_kernel(), Hardware::kLbr, small);
  PerfEngine second(real_kernel(), Hardware::kLbr, large);
  ASSERT_TRUE(first.start(thread));
  ASSERT_TRUE(second.start(thread));
  ASSERT_TRUE(child.run());
  std::size_t sizes[2] = {};
  for (PerfEngine* engine : {&first, &second}) {
    auto snapshot = engine->snapshot(thread, {{child.registers().rip}, false}, ~0ull);
    ASSERT_TRUE(snapshot) << snapshot.error().to_string();
    Shown shown = show(*snapshot);
    expect_stretches(shown, read_truth());
    sizes[engine == &second] = shown.executed.size();
    // One that ends takes nothing from the other.
    ASSERT_TRUE(engine->stop(thread));
  }
  EXPECT_GT(sizes[0], 0u);
  EXPECT_LT(sizes[0], sizes[1]);
}

}  // namespace
}  // namespace tailtrace::perf
