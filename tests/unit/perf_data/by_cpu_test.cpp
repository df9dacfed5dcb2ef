// Two processes that took turns on one CPU, each with code of its own at the same addresses: the
// context switches tell which of them was traced when, and the programs' maps with what code.
#include <gtest/gtest.h>

#include <fstream>

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
class PipeOfACpu {
 public:
  PipeOfACpu() {
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
  void switched(bool out, ThreadId thread, std::uint64_t time) {
    put(kRecordSwitch, out ? kMiscSwitchOut : 0, {}, "", thread, time);
  }
  void traced(const ToyRun& run, std::uint64_t time) {
    std::vector<BranchRecord> records = run.snapshot->records;
    for (BranchRecord& record : records) record.time = time;
    pt::SynthesisOptions options;
    options.timing = pt::SynthesisTiming::kTsc;
    auto trace = pt::synthesize(records, *run.snapshot->code, {}, options);
    ASSERT_TRUE(trace);
    trace_.insert(trace_.end(), trace->begin(), trace->end());
  }
  Bytes finish() {
    trace_.resize((trace_.size() + 7) & ~std::size_t{7});
    // Queue 0 of CPU 0; the threads are those that started.
    Bytes record = perf_record(kRecordAuxtrace, 0, {trace_.size(), 0, 0, both(0, 10), 0});
    append(record);
    append(trace_);
    return std::move(bytes_);
  }

 private:
  static std::uint64_t id(ThreadId thread) {
    return both(static_cast<std::uint32_t>(thread.pid), static_cast<std::uint32_t>(thread.tid));
  }
  void put(std::uint32_t type, std::uint16_t misc, std::vector<std::uint64_t> words,
           std::string_view text, ThreadId thread, std::uint64_t time) {
    Bytes record = perf_record(type, misc, words, text.empty() ? text : std::string(text) + '\0');
    Bytes trailer = word_bytes({id(thread), time, 0, 1});
    record.insert(record.end(), trailer.begin(), trailer.end());
    auto header = load<RecordHeader>(record);
    header.size_bytes = static_cast<std::uint16_t>(record.size());
    std::memcpy(record.data(), &header, sizeof header);
    append(record);
  }
  void append(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  Bytes bytes_, trace_;
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
  PipeOfACpu pipe;
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

// A process begins with its parent's code, and executes another program then.
TEST_F(ByCpu, ANewProgramTakesThePlaceOfTheOldOne) {
  PipeOfACpu pipe;
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

}  // namespace
}  // namespace tailtrace::perf
