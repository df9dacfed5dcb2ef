#include "decoder/bts/cpu_area.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/bts/two_threads.h"

namespace tailtrace::bts {
namespace {

const perf::RecordFormat kFormat = {perf::kSampleTid | perf::kSampleTime, true, 0, 0};

// An area, and what the kernel tells of it in a backward ring, as the driver of BTS fills them.
class Area {
 public:
  explicit Area(std::size_t size, std::size_t ring_size = 4096) : bytes_(size), ring_(ring_size) {}

  void put(ThreadId thread, std::uint64_t time_ns, std::initializer_list<std::uint64_t> sources,
           std::uint64_t flags = 0) {
    for (std::uint64_t from : sources) {
      if (head_ % bytes_.size() + perf::kBtsRecordSize_bytes > bytes_.size())
        head_ += bytes_.size() - head_ % bytes_.size();
      if (from == *sources.begin()) begin_ = head_;
      const std::uint64_t record[3] = {from, from + 1, 0};
      std::memcpy(bytes_.data() + head_ % bytes_.size(), record, sizeof record);
      head_ += sizeof record;
    }
    tell(thread, time_ns, flags);
  }
  Result<CpuBranches> read() const {
    auto records = perf::read_backward_ring(ring_, ring_head_);
    EXPECT_TRUE(records);
    return read_cpu_area({bytes_, head_, 0 - ring_head_ <= ring_.size()}, *records, kFormat);
  }
  CpuBranches must_read() const {
    auto read_area = read();
    EXPECT_TRUE(read_area) << read_area.error().to_string();
    return read_area ? *read_area : CpuBranches{};
  }
  void pretend_head(std::uint64_t head) { head_ = head; }

 private:
  void tell(ThreadId thread, std::uint64_t time_ns, std::uint64_t flags) {
    struct {
      perf::RecordHeader header{perf::kRecordAux, 0, 48};
      std::uint64_t offset, size, flags;
      std::int32_t pid, tid;
      std::uint64_t time_ns;
    } told;
    static_assert(sizeof told == 48);
    told.offset = begin_;
    told.size = head_ - begin_;
    told.flags = flags;
    told.pid = thread.pid;
    told.tid = thread.tid;
    told.time_ns = time_ns;
    ring_head_ -= sizeof told;
    for (std::size_t i = 0; i < sizeof told; ++i)
      ring_[(ring_head_ + i) % ring_.size()] = reinterpret_cast<const std::uint8_t*>(&told)[i];
  }

  Bytes bytes_, ring_;
  std::uint64_t begin_ = 0, head_ = 0, ring_head_ = 0;
};

TEST(CpuArea, BelongsToThoseWhomTheKernelNames) {
  Area area(4096);
  area.put(kA, 100, {1, 2});
  area.put(kB, 200, {3});
  area.put(kA, 300, {4});
  CpuBranches cpu = area.must_read();
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(cpu.begin_ns, 0u);
  EXPECT_EQ(cpu.batches[0].thread, kA);
  EXPECT_EQ(sources(cpu.batches[0]), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(cpu.batches[1].thread, kB);
  EXPECT_EQ(cpu.batches[1].time_ns, 200u);
  EXPECT_EQ(sources(cpu.batches[2]), (std::vector<std::uint64_t>{4}));
}

// 128 bytes have room for five records and the rest of one, which the driver leaves out; it tells
// of what comes behind in a record of its own.
TEST(CpuArea, ThatWentRoundHasTheNewestPart) {
  Area area(128);
  area.put(kA, 100, {1, 2, 3});
  area.put(kB, 200, {4, 5});
  area.put(kA, 300, {6, 7});
  CpuBranches cpu = area.must_read();
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(sources(cpu.batches[0]), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(cpu.begin_ns, 100u) << "1 and 2 were written over";
  EXPECT_EQ(sources(cpu.batches[2]), (std::vector<std::uint64_t>{6, 7}));
  auto shares = shares_by_thread({&cpu, 1});
  EXPECT_EQ(shares.at(kA)[0].lost_before, GapCause::kOverwritten);
  EXPECT_FALSE(shares.at(kA)[1].lost_before);
  // What one thread did alone since leaves nothing of the others.
  area.put(kB, 400, {8, 9, 10});
  area.put(kB, 410, {11, 12});
  area.put(kB, 500, {13});
  cpu = area.must_read();
  ASSERT_EQ(cpu.batches.size(), 3u);
  EXPECT_EQ(sources(cpu.batches[0]), (std::vector<std::uint64_t>{9, 10}));
  EXPECT_EQ(sources(cpu.batches[1]), (std::vector<std::uint64_t>{11, 12}));
  EXPECT_EQ(cpu.begin_ns, 400u);
}

TEST(CpuArea, OfWhichTheKernelsWordsAreOverwrittenBeginsWithThoseThatAreLeft) {
  Area area(4096, 128);  // two records and a bit
  for (std::uint64_t i = 1; i <= 4; ++i) area.put(kA, 100 * i, {i});
  CpuBranches cpu = area.must_read();
  ASSERT_EQ(cpu.batches.size(), 2u);
  EXPECT_EQ(cpu.begin_ns, 300u);
  EXPECT_TRUE(shares_by_thread({&cpu, 1}).at(kA)[0].lost_before);
}

TEST(CpuArea, ThatWasCutHasALossBehindTheCut) {
  Area area(4096);
  area.put(kA, 100, {1}, perf::kAuxTruncated);
  area.put(kB, 200, {2});
  area.put(kA, 300, {3}, perf::kAuxPartial);
  area.put(kA, 400, {4});
  CpuBranches cpu = area.must_read();
  auto shares = shares_by_thread({&cpu, 1});
  EXPECT_FALSE(shares.at(kB)[0].lost_before);
  const std::vector<Share>& of_a = shares.at(kA);
  ASSERT_EQ(of_a.size(), 5u);
  EXPECT_FALSE(of_a[0].lost_before);
  EXPECT_EQ(of_a[1].lost_before, GapCause::kTruncated);
  EXPECT_FALSE(of_a[2].lost_before) << "it is told by the one before, which is empty";
  EXPECT_TRUE(of_a[1].batch->branches.empty());
  EXPECT_EQ(of_a[3].lost_before, GapCause::kPartial);
}

TEST(CpuArea, IsNotReadWhereTheKernelNamesWhatIsNotThere) {
  Area area(4096);
  area.put(kA, 100, {1, 2});
  area.pretend_head(24);
  EXPECT_FALSE(area.read());
}

CpuBranches of_a_and_b() {
  Area area(4096);
  area.put(kA, 100, {1});
  area.put(kB, 200, {2});
  area.put(kA, 300, {3});
  return area.must_read();
}

const perf::CpuSlots kTurns = {{{kA, 50, 99}, {kB, 120, 199}, {kA, 210, 299}, {kB, 310, ~0ull}}};

TEST(Pauses, AreLossesOfThoseWhoHadTheCpu) {
  CpuBranches cpu = of_a_and_b();
  note_pauses(cpu, kTurns, 0, std::vector<Pause>{{150, 230}});
  auto shares = shares_by_thread({&cpu, 1});
  // B's last part, and A's first.
  ASSERT_EQ(shares.at(kB).size(), 2u);
  EXPECT_EQ(shares.at(kB)[0].lost_before, GapCause::kTruncated);
  EXPECT_EQ(shares.at(kB)[0].batch->time_ns, 199u);
  ASSERT_EQ(shares.at(kA).size(), 3u);
  EXPECT_FALSE(shares.at(kA)[0].lost_before);
  EXPECT_EQ(shares.at(kA)[1].lost_before, GapCause::kTruncated);
  EXPECT_EQ(shares.at(kA)[1].batch->time_ns, 230u);
}

TEST(Pauses, ThatLastStillAreTheEnd) {
  CpuBranches cpu = of_a_and_b();
  note_pauses(cpu, kTurns, 0, std::vector<Pause>{{300}});
  auto shares = shares_by_thread({&cpu, 1});
  EXPECT_EQ(shares.at(kA).size(), 2u);
  ASSERT_EQ(shares.at(kB).size(), 2u);
  EXPECT_TRUE(shares.at(kB)[1].lost_before);
}

TEST(Pauses, BetweenTurnsAreNobodysLoss) {
  CpuBranches cpu = of_a_and_b();
  note_pauses(cpu, kTurns, 0, std::vector<Pause>{{99, 120}, {199, 210}});
  EXPECT_EQ(cpu.batches.size(), 3u);
}

TEST(Pauses, FromBeforeTheTurnsAreKnownAreEverybodys) {
  CpuBranches cpu = of_a_and_b();
  note_pauses(cpu, {{{kA, 210, 299}}}, 210, std::vector<Pause>{{150, 160}});
  EXPECT_EQ(cpu.begin_ns, 210u);
}

}  // namespace
}  // namespace tailtrace::bts
