#include "decoder/record/ring.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "decoder/record/ring_view.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

class RingTest : public testing::Test {
 protected:
  std::string path(const std::string& name) { return folder_.file(name); }

 private:
  TempFolder folder_;
};

BranchRecord record_of(std::uint64_t n) { return {{n}, {n + 1}, n, 1, RecordKind::kJump, 0, 0}; }

TEST_F(RingTest, HoldsTheNewestRecordsAfterItWentRoundManyTimes) {
  auto writer = RingWriter::create(path("r"), {1, 2}, 0, 64);
  ASSERT_TRUE(writer) << writer.error().to_string();
  for (std::uint64_t n = 0; n < 1000; ++n) writer->push(record_of(n));
  auto ring = Ring::open(path("r"));
  ASSERT_TRUE(ring) << ring.error().to_string();
  EXPECT_EQ(ring->head().value, 1000u);
  EXPECT_EQ(ring->oldest().value, 1000u - 63);
  EXPECT_EQ(ring->at({999})->from.value, 999u);
  EXPECT_EQ(ring->at({100}).error().code, ErrorCode::kGone);
  EXPECT_EQ(ring->at({1000}).error().code, ErrorCode::kUsage);
  RecordRange all = ring->newest(~0ull);
  ASSERT_EQ(all.records.size(), 63u);
  EXPECT_EQ(all.first.value, 937u);
  for (std::size_t i = 0; i < all.records.size(); ++i)
    EXPECT_EQ(all.records[i], record_of(all.first.value + i));
  EXPECT_EQ(ring->newest(5).first.value, 995u);
}

TEST_F(RingTest, ShowsInPlaceWhatIsCopied) {
  const std::vector<BranchRecord> ends = {record_of(77), record_of(78)};
  for (std::uint64_t capacity : {64, 128, 1024})  // the first is less than a page
    for (std::uint64_t head : {0ul, 1ul, 63ul, 127ul, 128ul, 129ul, 1022ul, 1023ul, 5000ul, 5119ul})
      for (std::size_t count : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << capacity << " " << head << " " << count);
        const std::string name = path("p");
        std::filesystem::remove(name);
        auto writer = RingWriter::create(name, {1, 2}, 0, capacity);
        ASSERT_TRUE(writer) << writer.error().to_string();
        for (std::uint64_t n = 0; n < head; ++n) writer->push(record_of(n));
        auto ring = Ring::open(name);
        ASSERT_TRUE(ring) << ring.error().to_string();
        std::filesystem::remove(name);
        RecordRange copied = ring->newest(~0ull);
        copied.records.insert(copied.records.end(), ends.begin(), ends.begin() + count);
        const RecordSpan view = view_ring(*ring, std::span(ends).first(count));
        EXPECT_EQ(std::vector(view.records.begin(), view.records.end()), copied.records);
        EXPECT_EQ(view.first, copied.first);
      }
}

TEST_F(RingTest, LeavesOutWhatIsOverwrittenDuringARead) {
  for (std::uint64_t capacity : {64, 1024, 1 << 16}) {
    SCOPED_TRACE(capacity);
    const std::string name = path(std::to_string(capacity));
    auto writer = RingWriter::create(name, {1, 2}, 0, capacity);
    ASSERT_TRUE(writer) << writer.error().to_string();
    std::jthread writing([&](std::stop_token over) {
      for (std::uint64_t n = 0; !over.stop_requested(); ++n) writer->push(record_of(n));
    });
    auto ring = Ring::open(name);
    for (int reads = 0; reads < 300 || ring->head().value < 3 * capacity; ++reads) {
      const RecordRange range = ring->newest(~0ull);
      std::uint64_t position = range.first.value;
      for (const BranchRecord& record : range.records) ASSERT_EQ(record, record_of(position++));
      auto oldest = ring->at(ring->oldest());
      ASSERT_TRUE(!oldest || oldest->from.value == oldest->time);
    }
  }
}

TEST_F(RingTest, RefusesCapacitiesThatAreNoPowerOfTwo) {
  EXPECT_TRUE(check_ring_capacity(64));
  for (std::uint64_t bad : {0ull, 1ull, 63ull, 100ull, ~0ull, 1ull << 40}) {
    auto result = check_ring_capacity(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
  }
}

TEST_F(RingTest, RefusesAFileThatIsCutShort) {
  ASSERT_TRUE(RingWriter::create(path("r"), {1, 2}, 0, 64));
  for (std::uintmax_t size : {1ull, 100ull, 4096ull, 4096ull + 63 * 32}) {
    std::filesystem::resize_file(path("r"), size);
    auto ring = Ring::open(path("r"));
    ASSERT_FALSE(ring) << size;
    EXPECT_EQ(ring.error().code, ErrorCode::kBadInput);
    std::filesystem::remove(path("r"));
    ASSERT_TRUE(RingWriter::create(path("r"), {1, 2}, 0, 64));
  }
}

}  // namespace
}  // namespace tailtrace
