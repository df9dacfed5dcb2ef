#include "plugin/engines/step/step_engine.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kBase = 0x10000;
constexpr Address at(std::uint64_t offset) { return {kBase + offset}; }

// A process of one page of code, stepped by the test. Its number is ours: what is asked of the
// system about it is there.
struct Stepped {
  Stepped() {
    put(0x00, {0x90, 0x90, 0xeb, 0x0c});     // nop; nop; jmp +0x10
    put(0x10, {0x75, 0x0e});                 // jnz +0x20
    put(0x20, {0xe8, 0x1b, 0, 0, 0});        // call +0x40
    put(0x40, {0xc3});                       // ret
    put(0x50, {0x0f, 0x05});                 // syscall
    put(0x60, {0xf3, 0xa4});                 // rep movsb
    put(0x70, {0xc7, 0xf8, 0x0a, 0, 0, 0});  // xbegin, its other way out at +0x80
    put(0x80, {0x90, 0x90});
  }
  void put(std::size_t offset, std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  std::size_t read(Address address, std::span<std::uint8_t> out) const {
    if (address.value < kBase || address.value >= kBase + memory.size()) return 0;
    std::size_t begin = address.value - kBase, size = std::min(out.size(), memory.size() - begin);
    std::memcpy(out.data(), memory.data() + begin, size);
    return size;
  }
  bool step(std::uint64_t before, std::uint64_t after, int signal = 0) {
    return engine.stepped(thread, at(before), at(after), signal);
  }
  ThreadSnapshot snapshot(std::uint64_t pc) { return *engine.snapshot(thread, {at(pc)}, ~0ull); }

  ThreadId thread{::getpid(), ::getpid()};
  Bytes memory = Bytes(4096, 0x90);
  TempFolder folder;
  StepEngine engine{folder.path(), {64}, [this](ThreadId, Address a, std::span<std::uint8_t> out) {
                      return read(a, out);
                    }};
};

std::vector<RecordKind> kinds(const ThreadSnapshot& snapshot) {
  std::vector<RecordKind> result;
  for (const BranchRecord& record : snapshot.records) result.push_back(record.kind);
  return result;
}

using testing::ElementsAre;
using K = RecordKind;

TEST(StepEngine, BranchesCarryTheInstructionsBeforeThem) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  EXPECT_TRUE(s.step(0x00, 0x01));
  EXPECT_TRUE(s.step(0x01, 0x02));
  EXPECT_TRUE(s.step(0x02, 0x10));
  EXPECT_TRUE(s.step(0x10, 0x20));
  EXPECT_TRUE(s.step(0x20, 0x40));
  EXPECT_TRUE(s.step(0x40, 0x25));
  EXPECT_TRUE(s.step(0x25, 0x26));
  ThreadSnapshot snapshot = s.snapshot(0x26);
  EXPECT_THAT(kinds(snapshot), ElementsAre(K::kEnable, K::kJump, K::kConditional, K::kCall,
                                           K::kReturn, K::kDisable));
  EXPECT_EQ(snapshot.records[1].insns, 3u);
  EXPECT_EQ(snapshot.records[1].from, at(0x02));
  EXPECT_EQ(snapshot.records[1].to, at(0x10));
  EXPECT_EQ(snapshot.records[5].insns, 1u);
  EXPECT_TRUE(snapshot.complete);
}

TEST(StepEngine, OnlyTheNewestRecordsAreKept) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  for (int i = 0; i < 100; ++i) {
    s.step(0x20, 0x40);
    s.engine.moved(s.thread, at(0x40), at(0x20));
  }
  ThreadSnapshot snapshot = s.snapshot(0x20);
  EXPECT_FALSE(snapshot.complete);
  EXPECT_EQ(snapshot.records.size(), 64u);  // one is where the next goes; and the closing one
  EXPECT_EQ(s.engine.head(s.thread)->value, 201u);
}

TEST(StepEngine, LeavesNoFile) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  EXPECT_TRUE(std::filesystem::is_empty(s.folder.path()));
}

TEST(StepEngine, ATrapAfterASystemCallMayBeTheCalls) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  EXPECT_FALSE(s.step(0x50, 0x52));
  EXPECT_THAT(kinds(s.snapshot(0x52)), ElementsAre(K::kEnable, K::kSystemCall, K::kDisable));
}

TEST(StepEngine, RoundsOfARepeatedInstructionAreOneInstruction) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(s.step(0x60, 0x60));
  EXPECT_TRUE(s.step(0x60, 0x62));
  EXPECT_EQ(s.snapshot(0x62).records.back().insns, 1u);
}

TEST(StepEngine, ASignalThatIsHandledIsARecordOfItsOwn) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  auto* before = ::signal(SIGUSR1, [](int) {});
  s.step(0x00, 0x01);
  EXPECT_TRUE(s.step(0x01, 0x80, SIGUSR1));
  ::signal(SIGUSR1, before);
  ThreadSnapshot snapshot = s.snapshot(0x80);
  EXPECT_THAT(kinds(snapshot), ElementsAre(K::kEnable, K::kSignal, K::kDisable));
  EXPECT_EQ(snapshot.records[1].insns, 1u);
  EXPECT_EQ(snapshot.records[1].extra, SIGUSR1);
}

TEST(StepEngine, WhatCannotHaveBeenIsADiscontinuity) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  EXPECT_FALSE(s.step(0x00, 0x80));
  s.engine.moved(s.thread, at(0x80), at(0x10));
  EXPECT_THAT(kinds(s.snapshot(0x10)),
              ElementsAre(K::kEnable, K::kDiscontinuity, K::kDiscontinuity, K::kDisable));
}

TEST(StepEngine, ATransactionThatIsAbortedGoesTheOtherWay) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  EXPECT_TRUE(s.step(0x70, 0x80));
  EXPECT_TRUE(s.step(0x70, 0x81));  // the trap comes one instruction later
  ThreadSnapshot snapshot = s.snapshot(0x81);
  EXPECT_THAT(kinds(snapshot),
              ElementsAre(K::kEnable, K::kTransactionAbort, K::kTransactionAbort, K::kDisable));
  EXPECT_EQ(snapshot.records[3].insns, 1u);
}

TEST(StepEngine, CodeThatIsWrittenIsAnotherEpoch) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  s.step(0x00, 0x01);
  s.put(0x01, {0xeb, 0x1d});  // jmp +0x20
  s.engine.memory_written(s.thread.pid, at(0x01), 2);
  EXPECT_TRUE(s.step(0x01, 0x20));
  ThreadSnapshot snapshot = s.snapshot(0x20);
  EXPECT_THAT(kinds(snapshot), ElementsAre(K::kEnable, K::kCodeChange, K::kJump, K::kDisable));
}

TEST(StepEngine, AnotherProgramBeginsAnew) {
  Stepped s;
  ASSERT_TRUE(s.engine.start(s.thread));
  s.step(0x02, 0x10);
  s.engine.replaced(s.thread, at(0x40));
  ThreadSnapshot snapshot = s.snapshot(0x40);
  EXPECT_THAT(kinds(snapshot), ElementsAre(K::kEnable, K::kDisable));
  EXPECT_EQ(snapshot.records[0].to, at(0x40));
  EXPECT_EQ(snapshot.records[0].extra, static_cast<std::uint16_t>(EdgeCause::kExec));
}

TEST(StepEngine, AThreadThatIsNotRecordedHasNothing) {
  Stepped s;
  EXPECT_TRUE(s.step(0x00, 0x01));
  EXPECT_FALSE(s.engine.is_recording(s.thread));
  EXPECT_EQ(s.engine.stop(s.thread).error().code, ErrorCode::kGone);
  EXPECT_EQ(s.engine.head(s.thread).error().code, ErrorCode::kGone);
  EXPECT_EQ(s.engine.snapshot(s.thread, {at(0)}, 1).error().code, ErrorCode::kGone);
}

TEST(StepEngine, RingsOfSizesThatCannotBeAreRefused) {
  for (std::uint64_t records : {0ull, 3ull, 1ull << 60}) {
    Stepped s;
    s.engine.configure({records});
    EXPECT_FALSE(s.engine.start(s.thread)) << records;
  }
}

}  // namespace
}  // namespace tailtrace
