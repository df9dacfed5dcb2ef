#include "decoder/perf/cpu_slots.h"

#include <gtest/gtest.h>

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kFormat = kSampleTid | kSampleTime;
const ThreadId kA{1, 10}, kB{1, 11}, kNobody{-1, -1};

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
  void lost(std::uint64_t count, std::uint64_t time_ns) {
    struct {
      RecordHeader header{kRecordLost, 0, 40};
      std::uint64_t id = 1, count;
      std::int32_t pid = -1, tid = -1;
      std::uint64_t time_ns;
    } record;
    record.count = count;
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

TEST(CpuSlots, EndWhereTheNextBeginsWhenTheirEndIsNotTold) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(false, kA, 200);  // meanwhile it was on another CPU
  ring.put(false, kB, 300);
  ring.put(true, kB, 400);
  CpuSlots slots = ring.slots();
  ASSERT_EQ(slots.slots.size(), 3u);
  EXPECT_EQ(slots.slots[0].end_ns, 200u);
  EXPECT_EQ(slots.at(250)->thread, kA);
  EXPECT_EQ(slots.slots[1].end_ns, 300u);
  EXPECT_EQ(slots.at(350)->thread, kB);
  EXPECT_EQ(SwitchRing().slots().slots.size(), 0u);
}

TEST(CpuSlots, BeginWhereTheLastEndedWhenTheirBeginIsNotTold) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(true, kA, 200);
  ring.put(true, kB, 300);
  ring.put(false, kA, 400);
  CpuSlots slots = ring.slots();
  ASSERT_EQ(slots.slots.size(), 3u);
  EXPECT_EQ(slots.at(250)->thread, kB);
  EXPECT_EQ(slots.at(350)->thread, kA) << "on the way into it";
}

TEST(CpuSlots, AreNoOnesWhenNeitherEndNorBeginIsTold) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(true, kB, 300);
  ring.put(false, kA, 400);
  CpuSlots slots = ring.slots();
  EXPECT_EQ(slots.at(200)->thread, kNobody);
  EXPECT_EQ(slots.at(400)->thread, kA);
}

// Other threads may have been there between an end and a begin that are told.
TEST(CpuSlots, AreNoOnesWhereSeveralRecordsAreMissing) {
  SwitchRing ring;
  ring.put(false, kA, 100);
  ring.put(true, kA, 200);
  ring.lost(2, 290);
  ring.put(false, kB, 300);
  ring.lost(1, 350);
  ring.put(false, kA, 400);
  ring.lost(3, 450);
  ring.put(true, kA, 500);
  ring.lost(2, 550);
  ring.put(true, kB, 600);
  CpuSlots slots = ring.slots();
  EXPECT_EQ(slots.at(200)->thread, kA);
  EXPECT_EQ(slots.at(250)->thread, kNobody);
  EXPECT_EQ(slots.at(300)->thread, kB);
  EXPECT_EQ(slots.at(399)->thread, kB);
  EXPECT_EQ(slots.at(500)->thread, kA) << "the newest that was known";
  EXPECT_EQ(slots.at(550)->thread, kNobody);
}

}  // namespace
}  // namespace tailtrace::perf
