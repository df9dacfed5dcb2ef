#include "decoder/perf/aux_area.h"

#include <gtest/gtest.h>

#include <random>

namespace tailtrace::perf {
namespace {

// The hardware as simply as it can be said: it writes byte after byte and goes round.
struct Writer {
  Bytes area;
  std::size_t capacity;
  std::size_t position = 0;
  Bytes all;

  Writer(std::size_t size, std::size_t unit) : area(size), capacity(size - size % unit) {}
  void write(std::uint8_t byte) {
    all.push_back(byte);
    area[position] = byte;
    if (++position == capacity) position = 0;
  }
  // What the area must hold, oldest first, with zeros for what was never written.
  Bytes expected() const {
    Bytes result(capacity > all.size() ? capacity - all.size() : 0);
    result.insert(result.end(), all.end() - static_cast<std::ptrdiff_t>(capacity - result.size()),
                  all.end());
    return result;
  }
};

TEST(AuxArea, IsOrderedAtEveryHeadOfIntelPt) {
  std::mt19937 random(1);
  for (std::size_t size : {1u, 8u, 64u, 100u}) {
    Writer writer(size, 1);
    for (std::size_t n = 0; n < 3 * size + 1; ++n) {
      auto view = order_aux_area(writer.area, writer.position, AuxHead::kOffset);
      ASSERT_TRUE(view);
      EXPECT_EQ(view->joined(), writer.expected()) << size << " bytes, " << n << " written";
      writer.write(static_cast<std::uint8_t>(random() | 1));
    }
  }
}

TEST(AuxArea, HeadAtTheSizeIsTheBeginning) {
  Bytes area = *from_hex("0102030405060708");
  auto at_size = order_aux_area(area, 8, AuxHead::kOffset);
  auto at_zero = order_aux_area(area, 0, AuxHead::kOffset);
  ASSERT_TRUE(at_size && at_zero);
  EXPECT_EQ(at_size->joined(), area);
  EXPECT_EQ(at_zero->joined(), area);
}

TEST(AuxArea, LeavesOutTheTailThatBtsNeverWrites) {
  // 64 = 2 * 24 + 16 and 4096 = 170 * 24 + 16 and 56 = 2 * 24 + 8.
  for (std::size_t size : {24u, 48u, 56u, 64u, 4096u}) {
    Writer writer(size, 24);
    for (std::size_t records = 0; records < 3 * size / 24; ++records) {
      auto view = order_aux_area(writer.area, writer.position, AuxHead::kRecordOffset);
      ASSERT_TRUE(view);
      EXPECT_EQ(view->joined(), writer.expected()) << size << " bytes, " << records << " records";
      EXPECT_EQ(view->older.size() % 24, 0u);
      EXPECT_EQ(view->newer.size() % 24, 0u);
      for (int i = 0; i < 24; ++i) writer.write(static_cast<std::uint8_t>(1 + records % 255));
    }
    auto at_end = order_aux_area(writer.area, size - size % 24, AuxHead::kRecordOffset);
    ASSERT_TRUE(at_end);
    EXPECT_EQ(at_end->joined(), order_aux_area(writer.area, 0, AuxHead::kRecordOffset)->joined());
  }
}

TEST(AuxArea, RefusesHeadsThatNoDriverLeaves) {
  Bytes area(64);
  EXPECT_EQ(order_aux_area(area, 65, AuxHead::kOffset).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(order_aux_area(area, 64, AuxHead::kRecordOffset).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(order_aux_area(area, 25, AuxHead::kRecordOffset).error().code, ErrorCode::kBadInput);
  EXPECT_FALSE(order_aux_area(area, 65, AuxHead::kOffset).error().why.empty());
  EXPECT_EQ(unread_aux_area(area, 10, 75).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(unread_aux_area(area, 10, 9).error().code, ErrorCode::kBadInput);
}

TEST(AuxArea, AnAbsoluteHeadGoesRound) {
  Writer writer(64, 1);
  for (int n = 1; n <= 1000; ++n) {
    writer.write(static_cast<std::uint8_t>(n % 255 + 1));
    auto view = order_aux_area(writer.area, writer.all.size(), AuxHead::kAbsolute);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->joined(), writer.expected());
  }
  EXPECT_EQ(order_aux_area({}, 7, AuxHead::kAbsolute)->size_bytes(), 0u);
}

TEST(AuxArea, GivesWhatIsUnreadOfAWritableArea) {
  Writer writer(64, 1);
  std::mt19937 random(2);
  std::uint64_t tail = 0;
  for (int round = 0; round < 500; ++round) {
    for (std::uint64_t n = random() % (65 - (writer.all.size() - tail)); n > 0; --n)
      writer.write(static_cast<std::uint8_t>(random()));
    auto view = unread_aux_area(writer.area, tail, writer.all.size());
    ASSERT_TRUE(view);
    Bytes expected(writer.all.begin() + static_cast<std::ptrdiff_t>(tail), writer.all.end());
    ASSERT_EQ(view->joined(), expected);
    tail += random() % (view->size_bytes() + 1);
  }
}

TEST(AuxArea, ZerosInFrontAreDroppedAndOthersAreNot) {
  for (std::size_t written = 0; written <= 40; ++written) {
    for (std::size_t head = 0; head < 40; ++head) {
      Bytes stream(40 - written);
      for (std::size_t i = 0; i < written; ++i) stream.push_back(i % 3 == 1 ? 0 : 7);
      Bytes area(40);
      for (std::size_t i = 0; i < 40; ++i) area[(head + i) % 40] = stream[i];
      auto view = order_aux_area(area, head, AuxHead::kOffset);
      ASSERT_TRUE(view);
      Bytes expected(stream.end() - static_cast<std::ptrdiff_t>(written), stream.end());
      EXPECT_EQ(without_leading_zeros(*view).joined(), expected);
    }
  }
}

}  // namespace
}  // namespace tailtrace::perf
