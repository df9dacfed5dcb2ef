#include "decoder/pt/fast/stretch_log.h"

#include <gtest/gtest.h>

namespace tailtrace::pt {
namespace {

Instruction jump(std::uint64_t at, std::uint64_t to) {
  Instruction insn;
  insn.address = {at};
  insn.size_bytes = 2;
  insn.kind = InstructionClass::kJump;
  insn.target = {to};
  return insn;
}

Event event(EventKind kind, std::uint64_t ip, std::uint64_t time) {
  Event event;
  event.kind = kind;
  event.ip = {ip};
  event.time = time;
  event.flags = kEventHasTime;
  return event;
}

// Two jumps back and forth, so many times, between a begin and an end.
void put_stretch(Sink& sink, std::uint64_t at, std::uint64_t time, int times) {
  sink.event(event(EventKind::kEnabled, at, time));
  RunState state;
  state.time = time;
  for (int i = 0; i < times; ++i) {
    const Instruction both[] = {jump(at, at + 16), jump(at + 16, at)};
    sink.instructions(both, state);
  }
  sink.event(event(EventKind::kAsyncDisabled, at, time));
}

std::vector<BranchRecord> closed(Tail& tail, Address pc) {
  std::vector<BranchRecord> records = tail.records();
  for (const BranchRecord& record : tail.closing(pc)) records.push_back(record);
  return records;
}

// Stretches of two threads that took turns: what is played is what was executed.
TEST(StretchLog, PlaysEveryStretchAsItWasDecoded) {
  StretchLog log;
  Tail truth[2] = {Tail(1000), Tail(1000)}, played[2] = {Tail(1000), Tail(1000)};
  for (int turn = 0; turn < 6; ++turn) {
    const std::uint64_t at = turn % 2 == 0 ? 0x1000 : 0x2000;
    put_stretch(log, at, 100 + static_cast<std::uint64_t>(turn), turn);
    put_stretch(truth[turn % 2], at, 100 + static_cast<std::uint64_t>(turn), turn);
  }
  log.finish();
  ASSERT_EQ(log.stretches().size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(log.stretches()[i].time, 100 + i);
    log.play(log.stretches()[i], played[i % 2]);
  }
  for (int thread = 0; thread < 2; ++thread) {
    const Address pc{thread == 0 ? 0x1000u : 0x2000u};
    EXPECT_EQ(closed(played[thread], pc), closed(truth[thread], pc));
    EXPECT_GT(played[thread].records().size(), 10u);
  }
}

TEST(StretchLog, ForgetsTheOldestWhenThereIsTooMuch) {
  StretchLog log(100);
  for (std::uint64_t turn = 0; turn < 40; ++turn) put_stretch(log, 0x1000, 100 + turn, 10);
  log.finish();
  EXPECT_TRUE(log.forgot());
  ASSERT_FALSE(log.stretches().empty());
  EXPECT_GT(log.stretches().front().time, 100u);
  EXPECT_EQ(log.stretches().back().time, 139u);
  EXPECT_LE(log.stretches().size(), 12u);
  Tail tail(1000);
  log.play(log.stretches().front(), tail);
  EXPECT_EQ(tail.records().size(), 1u + 20u) << "where it began, and its jumps";
}

// --- Tail: where the code's epochs begin ------------------------------------------------------

std::vector<std::size_t> places_of_changes(const std::vector<BranchRecord>& records) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < records.size(); ++i)
    if (records[i].kind == RecordKind::kCodeChange) places.push_back(i);
  return places;
}

TEST(Tail, AnEpochBeginsBeforeTheFirstRecordOfItsTime) {
  Tail tail(1000, {{50, {1}}, {101, {2}}, {102, {3}}, {500, {4}}});
  for (std::uint64_t turn = 0; turn < 3; ++turn) put_stretch(tail, 0x1000, 100 + turn, 1);
  std::vector<BranchRecord> records = closed(tail, {0x1000});
  std::vector<std::size_t> places = places_of_changes(records);
  ASSERT_EQ(places.size(), 2u) << "the fourth is still to come";
  EXPECT_EQ(tail.first_epoch().value, 1u) << "begun before the oldest record";
  for (std::size_t i = 0; i < 2; ++i) {
    const BranchRecord& change = records[places[i]];
    EXPECT_EQ(change.from, records[places[i] - 1].to);
    EXPECT_EQ(change.to, change.from);
    EXPECT_EQ(change.insns, 0u);
    EXPECT_LT(records[places[i] - 1].time, 101 + i);
    EXPECT_GE(records[places[i] + 1].time, 101 + i);
  }
}

TEST(Tail, EpochsOfRecordsThatAreForgottenCount) {
  Tail tail(4, {{101, {1}}, {139, {2}}});
  for (std::uint64_t turn = 0; turn < 40; ++turn) {
    put_stretch(tail, 0x1000, 100 + turn, 1);
    (void)tail.records();
  }
  EXPECT_GT(tail.forgotten(), 0u);
  EXPECT_EQ(tail.first_epoch().value + places_of_changes(tail.records()).size(), 2u);
}

}  // namespace
}  // namespace tailtrace::pt
