// What is seen of a thread when its buffer holds far more than is kept of it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "decoder/pt/synthesis/synthesis.h"
#include "plugin/engines/perf/lossless.h"
#include "plugin/engines/perf/perf_engine.h"
#include "tests/support/fake_kernel.h"

namespace tailtrace::perf {
namespace {

const ThreadId kThisThread{::getpid(), ::getpid()};
constexpr std::size_t kKept = 1 << 10, kBuffer_bytes = 1 << 20;

// A loop in this process's memory: it goes round for ever, past a NOP or not.
class Loop {
 public:
  Loop()
      : at_(::mmap(nullptr, sizeof kCode, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
    std::memcpy(at_, kCode, sizeof kCode);
  }
  ~Loop() { ::munmap(at_, sizeof kCode); }
  Address begin() const { return {reinterpret_cast<std::uint64_t>(at_)}; }

  // So many records of it; which way it goes looks random, and is always the same.
  std::vector<BranchRecord> records(std::size_t count) const {
    const Address jump = begin() + 3;
    std::vector<BranchRecord> made{{{}, begin(), 0, 0, RecordKind::kEnable, 0, 0}};
    std::uint32_t state = 1, insns = 0;
    while (made.size() < count) {
      state = state * 1664525 + 1013904223;
      insns += 1;
      if ((state >> 31) != 0) {
        made.push_back({begin(), jump, 0, insns, RecordKind::kConditional, 0, 0});
        insns = 0;
      } else {
        insns += 1;
      }
      made.push_back({jump, begin(), 0, insns + 1, RecordKind::kJump, 0, 0});
      insns = 0;
    }
    made.resize(count);
    return made;
  }

  Bytes trace(const std::vector<BranchRecord>& records) const {
    CodeImage code;
    EXPECT_TRUE(code.add(begin(), Bytes(kCode, kCode + sizeof kCode)));
    pt::SynthesisOptions options;
    options.psb_period_bytes = 2048;
    auto bytes = pt::synthesize(records, code, {}, options);
    EXPECT_TRUE(bytes) << bytes.error().to_string();
    return std::move(*bytes);
  }

 private:
  static constexpr std::uint8_t kCode[] = {0x75, 0x01, 0x90, 0xeb, 0xfb};  // jne +1; nop; jmp -5
  void* at_;
};

class PtBuffer : public testing::Test {
 protected:
  PtBuffer() {
    kernel_.put_pmu("intel_pt", 8);
    const std::string folder = "/sys/bus/event_source/devices/intel_pt/";
    kernel_.put_file(folder + "format/pt", "config:0\n");
    kernel_.put_file(folder + "format/branch", "config:13\n");
    config_.records.ring_records = kKept;
    config_.buffer_bytes = kBuffer_bytes;
    config_.tsc = false;
    engine_ = std::make_unique<PerfEngine>(kernel_, Hardware::kPt, config_);
    EXPECT_TRUE(engine_->start(kThisThread));
  }

  // What was executed, at the end of a buffer that it need not fill, or overfills.
  ThreadSnapshot seen(const std::vector<BranchRecord>& executed) {
    const Bytes trace = loop_.trace(executed);
    EXPECT_GT(trace.size(), 200'000u);
    Bytes area(kBuffer_bytes);
    for (std::size_t i = 0; i < trace.size(); ++i) area[i % kBuffer_bytes] = trace[i];
    kernel_.put_aux(kernel_.opened().front().fd, area, trace.size() % kBuffer_bytes);
    auto snapshot = engine_->snapshot(kThisThread, {executed.back().to, false}, ~0ull);
    EXPECT_TRUE(snapshot) << snapshot.error().to_string();
    return std::move(*snapshot);
  }

  // One past the newest record that was recorded.
  static std::uint64_t end_of(const ThreadSnapshot& snapshot) { return snapshot.end().value - 1; }

  static void expect_newest_of(const ThreadSnapshot& snapshot,
                               const std::vector<BranchRecord>& executed) {
    const std::size_t count = snapshot.records.size() - 1;  // without where it stands
    ASSERT_GE(count, kKept);
    ASSERT_LE(count, 2 * kKept);
    EXPECT_FALSE(snapshot.complete);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(snapshot.records[i], executed[executed.size() - count + i]) << i;
  }

  FakeKernel kernel_;
  PerfConfig config_;
  Loop loop_;
  std::unique_ptr<PerfEngine> engine_;
};

TEST_F(PtBuffer, HasTheNewestRecords) {
  const auto executed = loop_.records(2'000'000);
  expect_newest_of(seen(executed), executed);
}

TEST_F(PtBuffer, HasThemAtTheSamePositionsLater) {
  const auto first = loop_.records(2'000'000), second = loop_.records(2'000'100),
             third = loop_.records(2'500'000), fourth = loop_.records(2'500'007);
  const std::uint64_t begin = end_of(seen(first));
  const ThreadSnapshot later = seen(second);
  EXPECT_EQ(end_of(later), begin + 100);
  expect_newest_of(later, second);
  // Nothing is left of what was known, though the newest rounds and the oldest may look alike.
  constexpr std::uint64_t kAlike = 64;
  const ThreadSnapshot behind = seen(third);
  EXPECT_GE(behind.first.value + kAlike, end_of(later));
  EXPECT_EQ(end_of(seen(fourth)), end_of(behind) + 7);
}

TEST_F(PtBuffer, ThatIsFullIsNoOther) {
  const auto first = loop_.records(12'000'000), second = loop_.records(12'000'100);
  EXPECT_GT(loop_.trace(first).size(), kBuffer_bytes);
  const ThreadSnapshot before = seen(first);
  expect_newest_of(before, first);
  const ThreadSnapshot later = seen(second);
  expect_newest_of(later, second);
  EXPECT_EQ(end_of(later), end_of(before) + 100);
}

// An event that waits for what it is to record, a library that is not loaded yet.
class WaitingEvent : public PtBuffer {
 protected:
  WaitingEvent() { config_.filters = {""}; }
  bool was_switched_on() const {
    return std::ranges::any_of(kernel_.controlled(), [](const FakeKernel::Controlled& control) {
      return control.request == PERF_EVENT_IOC_ENABLE;
    });
  }
};

TEST_F(WaitingEvent, IsNotSwitchedOnByLookingAtIt) {
  PerfEngine engine(kernel_, Hardware::kPt, config_);
  ASSERT_TRUE(engine.start(kThisThread));
  EXPECT_TRUE(engine.snapshot(kThisThread, {loop_.begin(), false}, ~0ull));
  EXPECT_FALSE(was_switched_on());
}

TEST_F(WaitingEvent, IsNotSwitchedOnByLookingAtAllThatItWrote) {
  TempFolder folder;
  auto lossless =
      Lossless::start(kernel_, Hardware::kPt, config_, kThisThread, folder.path() + "/pt");
  ASSERT_TRUE(lossless) << lossless.error().to_string();
  EXPECT_TRUE(lossless->snapshot(loop_.begin(), ~0ull));
  EXPECT_FALSE(was_switched_on());
}

}  // namespace
}  // namespace tailtrace::perf
