#include "decoder/perf/data_ring.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/perf/ring_model.h"

namespace tailtrace::perf {
namespace {

Bytes copy(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

// Both readers must give the newest records that fit into the ring whole, and no other.
std::size_t whole_in(const RingModel& model) {
  std::size_t bytes = 0, count = 0;
  const auto& records = model.records();
  while (count < records.size()) {
    bytes += records[records.size() - 1 - count].size();
    if (bytes > model.ring().size()) break;
    ++count;
  }
  return count;
}

void expect_newest(const RingModel& model, const RecordList& list) {
  ASSERT_EQ(list.size(), whole_in(model));
  std::size_t first = model.records().size() - list.size();
  for (std::size_t i = 0; i < list.size(); ++i)
    ASSERT_EQ(copy(list[i]), model.records()[first + i]) << "record " << first + i;
}

TEST(BackwardRing, GivesTheNewestRecordsOfAnySizeAtEveryMoment) {
  std::mt19937 random(3);
  for (std::size_t size : {64u, 256u, 4096u}) {
    RingModel model(size, true);
    for (std::uint64_t n = 0; n < 400; ++n) {
      auto list = read_backward_ring(model.ring(), model.head());
      ASSERT_TRUE(list) << list.error().to_string();
      expect_newest(model, *list);
      std::size_t bytes = 16 + 8 * (random() % 5);
      model.write(numbered_record(kRecordSample, bytes, n));
    }
  }
}

TEST(BackwardRing, HasNothingBeforeTheFirstRecord) {
  Bytes ring(4096);
  auto list = read_backward_ring(ring, 0);
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->empty());
}

TEST(BackwardRing, ALostRecordIsPutBeforeTheRecordItPrecedes) {
  RingModel model(4096, true);
  for (std::uint64_t n : {0, 1, 2}) model.write(numbered_record(kRecordSample, 48, n));
  model.write({numbered_record(kRecordLost, 24, 5), numbered_record(kRecordSample, 48, 200)});
  for (std::uint64_t n : {201, 202}) model.write(numbered_record(kRecordSample, 48, n));
  auto list = read_backward_ring(model.ring(), model.head());
  ASSERT_TRUE(list);
  std::vector<std::uint64_t> order;
  for (std::size_t i = 0; i < list->size(); ++i)
    order.push_back(load<std::uint64_t>((*list)[i], 8));
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 5, 200, 201, 202}));
  EXPECT_EQ(list->header(3).type, kRecordLost);
}

TEST(BackwardRing, ALostRecordWhosePartnerIsOverwrittenStaysTheOldest) {
  RingModel model(256, true);
  model.write({numbered_record(kRecordLost, 24, 5), numbered_record(kRecordSample, 48, 200)});
  for (std::uint64_t n = 0; n < 4; ++n) model.write(numbered_record(kRecordSample, 48, n));
  model.write(numbered_record(kRecordSample, 32, 4));
  // 24 + 4 * 48 + 32 = 248 of 256 bytes: LOST is whole, eight bytes of its partner are left.
  auto list = read_backward_ring(model.ring(), model.head());
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 6u);
  EXPECT_EQ(list->header(0).type, kRecordLost);
  EXPECT_EQ(load<std::uint64_t>((*list)[1], 8), 0u);
}

TEST(BackwardRing, ImpossibleSizesInARingThatNeverWentRoundAreErrors) {
  RingModel model(4096, true);
  model.write(numbered_record(kRecordSample, 48, 1));
  for (std::uint16_t size : {0, 4, 12, 56}) {
    Bytes ring = copy(model.ring());
    std::memcpy(ring.data() + 4096 - 48 + 6, &size, 2);
    auto list = read_backward_ring(ring, model.head());
    ASSERT_FALSE(list) << size;
    EXPECT_EQ(list.error().code, ErrorCode::kBadInput);
  }
}

TEST(FixedRecords, GiveTheNewestRecordsAtEveryMoment) {
  // 24 does not divide the ring: the seam cuts records at ever other places.
  for (std::uint16_t record_size : {24, 16, 48}) {
    RingModel model(256, false);
    RecordHeader like{kRecordSample, 0, record_size};
    for (std::uint64_t n = 0; n < 200; ++n) {
      auto list = read_fixed_records(model.ring(), model.head(), like, ~0ull);
      ASSERT_TRUE(list);
      EXPECT_FALSE(list->stranger);
      ASSERT_EQ(list->count, std::min<std::size_t>(n, 256 / record_size));
      ASSERT_EQ(list->first, n - list->count);
      for (std::size_t i = 0; i < list->count; ++i)
        ASSERT_EQ(copy((*list)[i]), model.records()[list->first + i]);
      model.write(numbered_record(kRecordSample, record_size, n));
    }
  }
}

TEST(FixedRecords, AStrangerHidesWhatIsOlder) {
  RingModel model(4096, false);
  for (std::uint64_t n = 0; n < 5; ++n) model.write(numbered_record(kRecordSample, 24, n));
  model.write(numbered_record(kRecordThrottle, 32, 99));
  for (std::uint64_t n = 5; n < 8; ++n) model.write(numbered_record(kRecordSample, 24, n));
  auto list = read_fixed_records(model.ring(), model.head(), {kRecordSample, 0, 24}, ~0ull);
  ASSERT_TRUE(list);
  EXPECT_TRUE(list->stranger);
  ASSERT_EQ(list->count, 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(load<std::uint64_t>((*list)[i], 8), 5 + i);
}

TEST(FixedRecords, ALimitKeepsTheNewest) {
  RingModel model(4096, false);
  for (std::uint64_t n = 0; n < 1000; ++n) model.write(numbered_record(kRecordSample, 24, n));
  auto list = read_fixed_records(model.ring(), model.head(), {kRecordSample, 0, 24}, 3);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->count, 3u);
  EXPECT_EQ(list->first, 997u);
  EXPECT_EQ(load<std::uint64_t>((*list)[2], 8), 999u);
}

TEST(ForwardRing, GivesWhatLiesBetweenTailAndHead) {
  std::mt19937 random(4);
  RingModel model(1024, false);
  std::uint64_t tail = 0;
  std::size_t taken = 0;
  for (std::uint64_t n = 0; n < 500; ++n) {
    std::size_t bytes = 16 + 8 * (random() % 5);
    if (model.head() + bytes - tail > 1024) {
      auto list = read_forward_ring(model.ring(), tail, model.head());
      ASSERT_TRUE(list) << list.error().to_string();
      for (std::size_t i = 0; i < list->size(); ++i)
        ASSERT_EQ(copy((*list)[i]), model.records()[taken + i]);
      taken += list->size();
      ASSERT_EQ(taken, model.records().size());
      tail = model.head();
    }
    model.write(numbered_record(kRecordSample, bytes, n));
  }
  EXPECT_EQ(read_forward_ring(model.ring(), 0, 1025).error().code, ErrorCode::kBadInput);
}

TEST(Rings, WhoseSizeIsNoPowerOfTwoAreRefused) {
  Bytes ring(4095);
  EXPECT_FALSE(read_backward_ring(ring, 0));
  EXPECT_FALSE(read_forward_ring(ring, 0, 0));
  EXPECT_FALSE(read_fixed_records(ring, 0, {kRecordSample, 0, 24}, 1));
  Bytes good(4096);
  EXPECT_FALSE(read_fixed_records(good, 0, {kRecordSample, 0, 0}, 1));
}

}  // namespace
}  // namespace tailtrace::perf
