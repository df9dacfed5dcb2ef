#include "plugin/provider/trace_provider.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/fake_kernel.h"

namespace tailtrace {
namespace {

using perf::Hardware;
using testing::HasSubstr;

const ThreadId kSelf{::getpid(), ::getpid()};

perf::PerfConfig small() {
  perf::PerfConfig config;
  config.records.ring_records = 1 << 10;
  config.buffer_bytes = 4096;
  return config;
}

TEST(TraceProvider, NamesAreUnderstood) {
  EXPECT_EQ(*parse_hardware("pt"), Hardware::kPt);
  EXPECT_EQ(*parse_hardware("auto"), std::nullopt);
  EXPECT_EQ(parse_hardware("qemu").error().code, ErrorCode::kUsage);
}

TEST(TraceProvider, TakesTheBestHardwareThatWorks) {
  FakeKernel kernel;
  TraceProvider provider(kernel, std::nullopt, small());
  ASSERT_TRUE(provider.start(kSelf));
  // There is no intel_pt and no intel_bts; branch samples are the next best.
  ASSERT_NE(provider.engine(), nullptr);
  EXPECT_EQ(provider.engine()->name(), "bts");
  auto remarks = provider.take_remarks();
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_THAT(remarks[0].what, HasSubstr("Intel PT"));
  EXPECT_THAT(remarks[1].what, HasSubstr("Intel BTS"));
  EXPECT_EQ(provider.threads(), std::vector<ThreadId>{kSelf});
}

TEST(TraceProvider, WhereNothingWorksEveryReasonIsTold) {
  FakeKernel kernel;
  kernel.on_open = [](const perf_event_attr&, perf::Target) { return -ENOENT; };
  TraceProvider provider(kernel, std::nullopt, small());
  auto started = provider.start(kSelf);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNoEngine);
  EXPECT_THAT(started.error().why, HasSubstr("Intel PT"));
  EXPECT_THAT(started.error().why, HasSubstr("branch samples"));
  EXPECT_THAT(started.error().why, HasSubstr("last branch records"));
  EXPECT_TRUE(provider.threads().empty());
}

TEST(TraceProvider, AProcessIsAllItsThreadsOrNone) {
  FakeKernel kernel;
  for (const char* tid : {"100", "101", "102"})
    kernel.put_file(std::string("/proc/100/task/") + tid + "/comm", "worker\n");
  TraceProvider provider(kernel, Hardware::kLbr, small());
  kernel.on_open = [](const perf_event_attr&, perf::Target target) {
    return target.tid == 102 ? -EMFILE : 0;
  };
  auto refused = provider.start_process(100);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().why, HasSubstr("file descriptors"));
  EXPECT_TRUE(provider.threads().empty());
  kernel.on_open = {};
  ASSERT_TRUE(provider.start_process(100));
  EXPECT_EQ(provider.threads().size(), 3u);
  kernel.put_file("/proc/100/task/103/comm", "worker\n");
  ASSERT_TRUE(provider.start_process(100));
  EXPECT_EQ(provider.threads().size(), 4u);
  ASSERT_TRUE(provider.stop_process(100));
  EXPECT_EQ(provider.stop_process(100).error().code, ErrorCode::kGone);
  EXPECT_EQ(provider.start_process(99).error().code, ErrorCode::kGone);
}

TEST(TraceProvider, AThreadThatEndedMeanwhileIsNoError) {
  FakeKernel kernel;
  for (const char* tid : {"100", "101"})
    kernel.put_file(std::string("/proc/100/task/") + tid + "/comm", "worker\n");
  kernel.on_open = [](const perf_event_attr&, perf::Target target) {
    return target.tid == 101 ? -ESRCH : 0;
  };
  TraceProvider provider(kernel, Hardware::kLbr, small());
  ASSERT_TRUE(provider.start_process(100));
  EXPECT_EQ(provider.threads(), (std::vector<ThreadId>{{100, 100}}));
}

TEST(TraceProvider, AThreadThatEndedSinceIsLeftOutOfItsProcess) {
  FakeKernel kernel;
  const std::string tasks = fmt::format("/proc/{}/task/", kSelf.pid);
  const ThreadId other{kSelf.pid, 1};
  for (ThreadId thread : {kSelf, other})
    kernel.put_file(fmt::format("{}{}/syscall", tasks, thread.tid), "-1 0x7ffc0000 0x401000\n");
  TraceProvider provider(kernel, Hardware::kLbr, small());
  ASSERT_TRUE(provider.start_process(kSelf.pid));
  EXPECT_EQ(provider.snapshot_process(kSelf.pid, ~0ull)->size(), 2u);
  std::filesystem::remove_all(fmt::format("{}{}{}", kernel.root(), tasks, other.tid));
  auto snapshots = provider.snapshot_process(kSelf.pid, ~0ull);
  ASSERT_TRUE(snapshots) << snapshots.error().to_string();
  ASSERT_EQ(snapshots->size(), 1u);
  EXPECT_EQ(snapshots->front().thread, kSelf);
  EXPECT_EQ(provider.threads(), std::vector<ThreadId>{kSelf});
}

TEST(TraceProvider, ARunningThreadHasNoSnapshot) {
  FakeKernel kernel;
  TraceProvider provider(kernel, Hardware::kLbr, small());
  EXPECT_EQ(provider.snapshot(kSelf, std::nullopt, 1).error().code, ErrorCode::kGone);
  ASSERT_TRUE(provider.start(kSelf));
  kernel.put_file(fmt::format("/proc/{0}/task/{0}/syscall", ::getpid()), "running\n");
  EXPECT_EQ(provider.snapshot(kSelf, std::nullopt, 1).error().code, ErrorCode::kUsage);
  kernel.put_file(fmt::format("/proc/{0}/task/{0}/syscall", ::getpid()),
                  "-1 0x7ffc4ab25e30 0x7f2a1c0f1234\n");
  auto snapshot = provider.snapshot(kSelf, std::nullopt, 1);
  ASSERT_TRUE(snapshot) << snapshot.error().to_string();
  EXPECT_EQ(snapshot->records.back().from.value, 0x7f2a1c0f1234u);
  EXPECT_EQ(provider.snapshot_process(kSelf.pid, ~0ull)->size(), 1u);
}

}  // namespace
}  // namespace tailtrace
