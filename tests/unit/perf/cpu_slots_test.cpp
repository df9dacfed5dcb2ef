#include "decoder/perf/cpu_slots.h"

#include <gtest/gtest.h>

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kFormat = kSampleTid | kSampleTime;
const ThreadId kA{1, 10}, kB{1, 11};

// A forward ring of SWITCH records with their trailer: thread and time.
class SwitchRing {
 public:
  void put(bool out, ThreadId thread, std::uint64_t time_ns) {
    struct {
      RecordHeader header{kRecordSwitch, 0, 24};
      std::int32_t pid, tid;
      std::uint64_t time_ns;
    } record;
    record.header.misc = out ? kMiscSwitchOut : 0;
    record.pid = thread.pid;
    record.tid = thread.tid;
    record.time_ns = time_ns;
    std::memcpy(bytes_.data() + head_, &record, sizeof record);
    head_ += sizeof record;
  }
  CpuSlots slots() const {
    auto records = read_forward_ring(bytes_, 0, head_);
    EXPECT_TRUE(records);
    auto slots = find_cpu_slots(*records, {kFormat, true, 0, 0});
    EXPECT_TRUE(slots);
    return slots ? *slots : CpuSlots();
  }

 private:
  Bytes bytes_ = Bytes(4096);
  std::uint64_t head_ = 0;
};

TEST(CpuSlots, LieBetweenInAndOut) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(true, kA, 200);
  ring.put(false, kB, 300);
  CpuSlots slots = ring.slots();
  ASSERT_EQ(slots.slots.size(), 2u);
  EXPECT_EQ(slots.at(100)->thread, kA);
  EXPECT_EQ(slots.at(200)->thread, kA);
  EXPECT_EQ(slots.at(250)->thread, kB) << "on the way into it";
  EXPECT_EQ(slots.at(1000)->thread, kB) << "it still runs";
}

TEST(CpuSlots, BeginBeforeTheFirstRecord) {
  SwitchRing ring;
  ring.put(true, kA, 200);
  ring.put(false, kB, 300);
  ring.put(true, kB, 400);
  CpuSlots slots = ring.slots();
  EXPECT_EQ(slots.at(1)->thread, kA);
  EXPECT_EQ(slots.at(350)->thread, kB);
  EXPECT_EQ(slots.at(500), nullptr);
}

TEST(CpuSlots, AreNotKnownBeforeTheFirstSwitchThatIsLeft) {
  SwitchRing ring;
  ring.put(true, kA, 200);
  ring.put(false, kB, 300);
  ring.put(true, kB, 400);
  CpuSlots slots = ring.slots();
  EXPECT_EQ(slots.forget_before_first_switch(), 300u);
  ASSERT_EQ(slots.slots.size(), 1u);
  EXPECT_EQ(slots.slots[0].thread, kB);
  EXPECT_EQ(CpuSlots().forget_before_first_switch(), ~0ull);
}

TEST(CpuSlots, EndWithAThreadThatIsGone) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(true, {-1, -1}, 150);
  ring.put(false, kB, 300);
  CpuSlots slots = ring.slots();
  EXPECT_EQ(slots.at(120)->thread, kA);
  EXPECT_EQ(slots.at(200)->thread, kB);
}

TEST(CpuSlots, OfTheSameThreadAreOneWhenItsEndIsNotTold) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(false, kA, 200);
  ring.put(true, kA, 300);
  EXPECT_EQ(ring.slots().slots.size(), 1u);
  EXPECT_EQ(SwitchRing().slots().slots.size(), 0u);
}

}  // namespace
}  // namespace tailtrace::perf
