// Processes that took turns on CPUs, each with code of its own at the same addresses: the context
// switches tell which of them was traced when, and the programs' maps with what code.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <set>

#include "decoder/pt/synthesis/synthesis.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kFields = kSampleTid | kSampleTime | kSampleCpu | kSampleIdentifier;
constexpr std::uint32_t kPmu = 8;

Bytes word_bytes(const std::vector<std::uint64_t>& words) {
  Bytes bytes(words.size() * 8);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}
std::uint64_t both(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

// A pipe, as `perf record -e intel_pt//u -o -` writes it. Times are ticks.
class PipeOfCpus {
 public:
  PipeOfCpus() {
    append(as_bytes(kPerfDataMagic));
    append(word_bytes({kHeaderPipeBytes}));
    std::vector<std::uint64_t> attr(64 / 8);
    attr[0] = both(kPmu, 64);
    attr[kAttrConfig / 8] = 0x2401;
    attr[kAttrSampleType / 8] = kFields;
    attr[kAttrFlags / 8] = kAttrSampleIdAll | kAttrExcludeKernel;
    attr.push_back(1);
    append(perf_record(kRecordHeaderAttr, 0, attr));
    std::vector<std::uint64_t> info(1 + kInfoWords);
    info[0] = kAuxtracePt;
    info[1 + kInfoPmuType] = kPmu;
    info[1 + kInfoTimeMult] = 1;
    info[1 + kInfoTimeIsKnown] = 1;
    append(perf_record(kRecordAuxtraceInfo, 0, info));
  }

  void started(ThreadId thread) { put(kRecordItraceStart, 0, {id(thread)}, "", thread, 1); }
  void mapped(ThreadId thread, const FiledProgram& program, std::uint64_t time) {
    put(kRecordMmap2, kMiscUser,
        {id(thread), ToyProgram::kBase.value, program.size_bytes, 0, 0, 0, 0, both(5, 2)},
        program.path, thread, time);
  }
  void executed(ThreadId thread, std::uint64_t time) {
    put(kRecordComm, kMiscCommExec, {id(thread)}, "toy", thread, time);
  }
  void forked(ThreadId thread, ThreadId parent, std::uint64_t time) {
    auto pid = [](std::int32_t n) { return static_cast<std::uint32_t>(n); };
    put(kRecordFork, 0,
        {both(pid(thread.pid), pid(parent.pid)), both(pid(thread.tid), pid(parent.tid)), time}, "",
        parent, time);
  }
  void switched(bool out, ThreadId thread, std::uint64_t time, unsigned cpu = 0) {
    put(kRecordSwitch, out ? kMiscSwitchOut : 0, {}, "", thread, time, cpu);
  }
  void lost(std::uint64_t records, std::uint64_t time) {
    put(kRecordLost, 0, {1, records}, "", {-1, -1}, time);
  }
  // What was traced until now is all that there was room for.
  void truncated(ThreadId thread, std::uint64_t time, unsigned cpu = 0) {
    put(kRecordAux, 0, {0, traces_[cpu].size(), kAuxTruncated}, "", thread, time, cpu);
  }
  void traced(const ToyRun& run, std::uint64_t time, unsigned cpu = 0) {
    std::vector<BranchRecord> records = run.snapshot->records;
    for (BranchRecord& record : records) record.time = time;
    pt::SynthesisOptions options;
    options.timing = pt::SynthesisTiming::kTsc;
    auto trace = pt::synthesize(records, *run.snapshot->code, {}, options);
    ASSERT_TRUE(trace);
    traces_[cpu].insert(traces_[cpu].end(), trace->begin(), trace->end());
  }
  Bytes finish() {
    for (auto& [cpu, trace] : traces_) {
      trace.resize((trace.size() + 7) & ~std::size_t{7});
      // The queue has the CPU's number; the threads are those that started.
      append(perf_record(kRecordAuxtrace, 0, {trace.size(), 0, 0, both(cpu, 10), cpu}));
      append(trace);
    }
    return std::move(bytes_);
  }

 private:
  static std::uint64_t id(ThreadId thread) {
    return both(static_cast<std::uint32_t>(thread.pid), static_cast<std::uint32_t>(thread.tid));
  }
  void put(std::uint32_t type, std::uint16_t misc, std::vector<std::uint64_t> words,
           std::string_view text, ThreadId thread, std::uint64_t time, unsigned cpu = 0) {
    Bytes record = perf_record(type, misc, words, text.empty() ? text : std::string(text) + '\0');
    Bytes trailer = word_bytes({id(thread), time, cpu, 1});
    record.insert(record.end(), trailer.begin(), trailer.end());
    auto header = load<RecordHeader>(record);
    header.size_bytes = static_cast<std::uint16_t>(record.size());
    std::memcpy(record.data(), &header, sizeof header);
    append(record);
  }
  void append(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  Bytes bytes_;
  std::map<unsigned, Bytes> traces_;
};

std::vector<Address> joined(const ToyRun& a, const ToyRun& b) {
  std::vector<Address> all = a.executed;
  all.insert(all.end(), b.executed.begin(), b.executed.end());
  return all;
}

class ByCpu : public testing::Test {
 protected:
  ByCpu() {
    for (std::uint64_t i = 0; i < 2; ++i) {
      toys_.emplace_back(20 + i, 4, 4);
      filed_.push_back(FiledProgram::write(toys_.back(), folder_.file("toy" + std::to_string(i))));
    }
  }
  OpenedThread open(const Bytes& file, ThreadId thread) {
    auto data = parse_perf_data(file, "perf.data");
    EXPECT_TRUE(data);
    auto recording = PerfRecording::make(std::move(*data), "");
    EXPECT_TRUE(recording);
    auto opened = (*recording)->open_thread(thread);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().to_string());
    return *opened;
  }

  TempFolder folder_;
  std::vector<ToyProgram> toys_;
  std::vector<FiledProgram> filed_;
};

constexpr ThreadId kA{10, 10}, kB{11, 11};

TEST_F(ByCpu, EachThreadHasWhatItDidInItsTurns) {
  PipeOfCpus pipe;
  pipe.started(kA);
  pipe.started(kB);
  pipe.mapped(kA, filed_[0], 2);
  pipe.mapped(kB, filed_[1], 3);
  ToyRun a1 = toys_[0].run(1, 200), a2 = toys_[0].run(2, 150), b = toys_[1].run(3, 300);
  pipe.switched(false, kA, 100);
  pipe.traced(a1, 110);
  pipe.switched(true, kA, 200);
  pipe.switched(false, kB, 210);
  pipe.traced(b, 220);
  pipe.switched(true, kB, 300);
  pipe.switched(false, kA, 310);
  pipe.traced(a2, 320);
  pipe.switched(true, kA, 400);
  const Bytes file = pipe.finish();
  EXPECT_EQ(instructions_of(open(file, kA)), joined(a1, a2));
  EXPECT_EQ(instructions_of(open(file, kB)), b.executed);
}

// Of threads that change their CPU now and then, and with some ends of turns that are not told.
TEST_F(ByCpu, ThreadsThatMigrateHaveAllThatTheyDid) {
  constexpr std::uint64_t kBegin = 1'000'000'000'000;
  constexpr unsigned kCpus = 4;
  const std::vector<ThreadId> threads = {kA, kB, {10, 12}};
  for (bool all_told : {true, false}) {
    std::mt19937_64 random(7);
    PipeOfCpus pipe;
    pipe.started(kA);
    pipe.started(kB);
    pipe.mapped(kA, filed_[0], kBegin);
    pipe.mapped(kB, filed_[1], kBegin + 1);
    for (std::size_t i = 2; i < threads.size(); ++i)
      pipe.forked(threads[i], threads[i].pid == kA.pid ? kA : kB, kBegin + i);
    std::map<ThreadId, std::vector<Address>> executed;
    std::map<unsigned, ThreadId> on;
    std::set<ThreadId> running;
    std::uint64_t now = kBegin + 10;
    for (int i = 0; i < 150; ++i) {
      const unsigned cpu = random() % kCpus;
      if (auto left = on.find(cpu); left != on.end()) {
        if (all_told || random() % 3 != 0) pipe.switched(true, left->second, now, cpu);
        running.erase(left->second);
        on.erase(left);
      }
      const ThreadId thread = threads[random() % threads.size()];
      if (!running.insert(thread).second) continue;
      on[cpu] = thread;
      pipe.switched(false, thread, now += 10, cpu);
      const ToyRun run = toys_[thread.pid == kA.pid ? 0 : 1].run(random(), 30);
      pipe.traced(run, now += 10, cpu);
      executed[thread].insert(executed[thread].end(), run.executed.begin(), run.executed.end());
      now += 10;
    }
    const Bytes file = pipe.finish();
    for (ThreadId thread : threads)
      EXPECT_EQ(instructions_of(open(file, thread)), executed[thread]) << thread.tid;
  }
}

// Records of switches are missing: the time is nobody's, and who may have been there has a gap.
TEST_F(ByCpu, WhatMayBeAnotherThreadsIsNotShown) {
  PipeOfCpus pipe;
  pipe.started(kA);
  pipe.started(kB);
  pipe.mapped(kA, filed_[0], 2);
  pipe.mapped(kB, filed_[1], 3);
  const ToyRun a1 = toys_[0].run(1, 200), a2 = toys_[0].run(2, 150), b = toys_[1].run(3, 300);
  pipe.switched(false, kA, 100);
  pipe.traced(a1, 110);
  pipe.switched(true, kA, 200);
  pipe.traced(b, 220);
  pipe.lost(2, 300);
  pipe.switched(false, kA, 310);
  pipe.traced(a2, 320);
  pipe.switched(true, kA, 400);
  const Bytes file = pipe.finish();
  const OpenedThread opened = open(file, kA);
  EXPECT_EQ(instructions_of(opened), joined(a1, a2));
  EXPECT_EQ(gaps_of(opened), 1u);
  EXPECT_FALSE(opened.problems.empty());
}

// A process begins with its parent's code, and executes another program then.
TEST_F(ByCpu, ANewProgramTakesThePlaceOfTheOldOne) {
  PipeOfCpus pipe;
  pipe.started(kA);
  pipe.mapped(kA, filed_[0], 2);
  pipe.forked(kB, kA, 50);
  ToyRun before = toys_[0].run(1, 200), after = toys_[1].run(2, 150);
  pipe.switched(false, kB, 100);
  pipe.traced(before, 110);
  pipe.executed(kB, 150);
  pipe.mapped(kB, filed_[1], 160);
  pipe.traced(after, 170);
  pipe.switched(true, kB, 400);
  const Bytes file = pipe.finish();
  OpenedThread opened = open(file, kB);
  EXPECT_EQ(instructions_of(opened), joined(before, after));
  EXPECT_TRUE(opened.problems.empty());
}

// A library takes the place of another one; a process that was forked before keeps the old one.
TEST_F(ByCpu, AMappingOverOldCodeIsOfItsProcessFromThenOn) {
  PipeOfCpus pipe;
  pipe.started(kA);
  pipe.mapped(kA, filed_[0], 2);
  pipe.forked(kB, kA, 50);
  const ToyRun before = toys_[0].run(1, 200), after = toys_[1].run(2, 150);
  const ToyRun child = toys_[0].run(3, 300);
  pipe.switched(false, kA, 100);
  pipe.traced(before, 110);
  pipe.mapped(kA, filed_[1], 150);
  pipe.traced(after, 160);
  pipe.switched(true, kA, 200);
  pipe.switched(false, kB, 210);
  pipe.traced(child, 220);
  pipe.switched(true, kB, 300);
  const Bytes file = pipe.finish();
  EXPECT_EQ(instructions_of(open(file, kA)), joined(before, after));
  EXPECT_EQ(instructions_of(open(file, kB)), child.executed);
}

// There was no room in the area for the end of a turn: that thread has a gap there.
TEST_F(ByCpu, AHoleIsOfTheThreadThatWasTracedThen) {
  for (const bool in_turn : {true, false}) {
    PipeOfCpus pipe;
    pipe.started(kA);
    pipe.started(kB);
    pipe.mapped(kA, filed_[0], 2);
    pipe.mapped(kB, filed_[1], 3);
    const ToyRun a1 = toys_[0].run(1, 200), a2 = toys_[0].run(2, 150), b = toys_[1].run(3, 300);
    pipe.switched(false, kA, 100);
    pipe.traced(a1, 110);
    pipe.truncated(kA, 190);
    if (in_turn) pipe.traced(a2, 195);
    pipe.switched(true, kA, 200);
    pipe.switched(false, kB, 210);
    pipe.traced(b, 220);
    pipe.switched(true, kB, 300);
    if (!in_turn) {
      pipe.switched(false, kA, 310);
      pipe.traced(a2, 320);
      pipe.switched(true, kA, 400);
    }
    const Bytes file = pipe.finish();
    const OpenedThread a = open(file, kA), other = open(file, kB);
    EXPECT_EQ(instructions_of(a), joined(a1, a2));
    EXPECT_EQ(gaps_of(a), 1u) << in_turn;
    EXPECT_EQ(instructions_of(other), b.executed);
    EXPECT_EQ(gaps_of(other), 0u) << in_turn;
  }
}

}  // namespace
}  // namespace tailtrace::perf
