#include "decoder/history/markers.h"

#include <gtest/gtest.h>

#include <random>

#include "decoder/history/history.h"

namespace tailtrace {
namespace {

// 1000 nop | 1001 nop | 1002 nop | 1003 jmp 1000
std::shared_ptr<CodeImage> loop_code() {
  auto image = std::make_shared<CodeImage>();
  EXPECT_TRUE(image->add({0x1000}, *from_hex("909090ebfb")));
  return image;
}

// So many rounds of the loop, the last one cut at 1002.
ThreadSnapshot rounds(std::uint64_t count, bool timed = false) {
  ThreadSnapshot snapshot;
  snapshot.code = loop_code();
  snapshot.records.push_back({{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0});
  for (std::uint64_t i = 1; i < count; ++i)
    snapshot.records.push_back(
        {{0x1003}, {0x1000}, timed ? i * 100 : 0, 4, RecordKind::kJump, 0, 0});
  snapshot.records.push_back({{0x1002}, {}, 0, 2, RecordKind::kDisable, kFlagAsync, 0});
  return snapshot;
}

// "1000 1001 M0 1002": instructions and markers in order, by following the code.
std::string shown(const ThreadSnapshot& snapshot) {
  std::string text;
  Address at;
  for (const BranchRecord& record : snapshot.records) {
    CodeReader reader(*snapshot.code);
    for (std::uint32_t i = 0; i < record.insns; ++i) {
      char address[20];
      snprintf(address, sizeof address, "%llx ", static_cast<unsigned long long>(at.value));
      text += address;
      at = reader.at(at)->next();
    }
    if (record.kind == RecordKind::kMarker) text += "M" + std::to_string(record.extra) + " ";
    at = record.to;
  }
  return text;
}

std::vector<Address> executed(const ThreadSnapshot& snapshot) {
  History history(std::make_shared<ThreadSnapshot>(snapshot));
  EXPECT_EQ(history.gaps(), 0u);
  std::vector<Address> all;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next())
    all.push_back(cursor.item().instruction.address);
  return all;
}

TEST(Markers, StandBeforeTheInstructionThatWasHit) {
  MarkedMoment hits[] = {{{0x1002}, true, 0, 1}, {{0x1000}, true, 0, 2}};
  MarkedSnapshot marked = put_markers(rounds(2), hits);
  EXPECT_EQ(shown(marked.snapshot), "1000 1001 M1 1002 1003 M2 1000 1001 ");
  ASSERT_TRUE(marked.places[0] && marked.places[1]);
  EXPECT_EQ(marked.snapshot.records[marked.places[0]->value].extra, 1);
  EXPECT_EQ(marked.snapshot.records[marked.places[1]->value].extra, 2);
}

TEST(Markers, OfAnAccessStandBehindTheInstructionThatDidIt) {
  MarkedMoment hits[] = {{{0x1001}, false, 0, 0}, {{0x1000}, false, 0, 1}, {{0x1002}, false, 0, 2}};
  EXPECT_EQ(shown(put_markers(rounds(2), hits).snapshot),
            "1000 M0 1001 1002 1003 M1 1000 1001 M2 ");
}

TEST(Markers, TheNewestHitsAreTheNewestVisits) {
  std::vector<MarkedMoment> hits(3, {{0x1001}, true, 0, 0});
  MarkedSnapshot marked = put_markers(rounds(5), hits);
  EXPECT_EQ(shown(marked.snapshot),
            "1000 1001 1002 1003 1000 1001 1002 1003 1000 M0 1001 1002 1003 "
            "1000 M0 1001 1002 1003 1000 M0 1001 ");
  // More hits than visits: the oldest came before the history begins.
  hits.resize(9, hits.front());
  marked = put_markers(rounds(5), hits);
  EXPECT_FALSE(marked.places[3]);
  EXPECT_TRUE(marked.places[4]);
}

TEST(Markers, AVisitThatCameLaterThanTheHitIsNotItsOwn) {
  MarkedMoment hit[] = {{{0x1001}, true, 150, 7}};
  MarkedSnapshot marked = put_markers(rounds(4, true), hit);
  EXPECT_EQ(shown(marked.snapshot),
            "1000 1001 1002 1003 1000 M7 1001 1002 1003 1000 1001 1002 1003 1000 1001 ");
  EXPECT_EQ(marked.snapshot.records[marked.places[0]->value].time, 150u);
}

TEST(Markers, HitsThatAGapHidAreNotPutElsewhere) {
  ThreadSnapshot snapshot = rounds(4, true);
  // Round 3 is lost.
  snapshot.records[2] = {{}, {0x1000}, 200, 0, RecordKind::kGap, 0, 0};
  std::vector<MarkedMoment> hits;
  for (std::uint64_t time : {50, 150, 250, 350}) hits.push_back({{0x1001}, true, time, 0});
  MarkedSnapshot marked = put_markers(snapshot, hits);
  EXPECT_TRUE(marked.places[3] && marked.places[2]);
  for (MarkedMoment& hit : hits) hit.time = 0;
  marked = put_markers(snapshot, hits);
  EXPECT_TRUE(marked.places[3]);
  EXPECT_FALSE(marked.places[0]) << "nobody can tell which hit it was";
}

TEST(Markers, LeaveTheInstructionsAsTheyAre) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    ThreadSnapshot snapshot = rounds(1 + random() % 6);
    std::vector<MarkedMoment> hits(random() % 8);
    for (MarkedMoment& hit : hits) {
      hit.next = {0x1000 + random() % 4};
      hit.executes = random() % 2 == 0;
    }
    MarkedSnapshot marked = put_markers(snapshot, hits);
    ASSERT_EQ(executed(marked.snapshot), executed(snapshot));
    std::size_t markers = 0, placed = 0;
    for (const BranchRecord& record : marked.snapshot.records)
      markers += record.kind == RecordKind::kMarker;
    std::optional<Position> before;
    for (auto place : marked.places) {
      placed += place.has_value();
      if (place && before) {
        ASSERT_LT(before->value, place->value);
      }
      if (place) before = place;
    }
    ASSERT_EQ(markers, placed);
  }
}

}  // namespace
}  // namespace tailtrace
