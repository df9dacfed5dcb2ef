#include "decoder/perf/events.h"

#include <gtest/gtest.h>

namespace tailtrace::perf {
namespace {

// Puts records together field by field, as the manual page perf_event_open(2) lists them.
class Builder {
 public:
  explicit Builder(std::uint32_t type, std::uint16_t misc = 0) {
    RecordHeader header{type, misc, 0};
    bytes_.resize(sizeof header);
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  Builder& u8(std::uint8_t value) { return put(value); }
  Builder& u32(std::uint32_t value) { return put(value); }
  Builder& u64(std::uint64_t value) { return put(value); }
  Builder& text(std::string_view value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.push_back(0);
    while (bytes_.size() % 8 != 0) bytes_.push_back(0);
    return *this;
  }
  Bytes done() {
    auto size = static_cast<std::uint16_t>(bytes_.size());
    std::memcpy(bytes_.data() + 6, &size, 2);
    return bytes_;
  }

 private:
  template <class T>
  Builder& put(T value) {
    std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  Bytes bytes_;
};

const RecordFormat kWithTrailer{kSampleTid | kSampleTime | kSampleCpu | kSampleIdentifier, true, 0,
                                0};

Builder& trailer(Builder& b) { return b.u32(10).u32(11).u64(777).u64(3).u64(42); }

template <class T>
T body(const Bytes& record, const RecordFormat& format = {}) {
  auto event = parse_record(record, format);
  EXPECT_TRUE(event) << event.error().to_string();
  return std::get<T>(event->body);
}

TEST(Events, Mmap2WithABuildId) {
  Builder b(kRecordMmap2, kMiscUser | kMiscMmapBuildId);
  b.u32(5).u32(6).u64(0x7f0000001000).u64(0x2000).u64(0x3000);
  b.u8(8).u8(0).u8(0).u8(0);
  for (std::uint8_t i = 0; i < 20; ++i) b.u8(i);
  b.u32(5).u32(2).text("/usr/lib/libm.so.6");
  auto map = body<MmapEvent>(trailer(b).done(), kWithTrailer);
  EXPECT_EQ(map.thread, (ThreadId{5, 6}));
  EXPECT_EQ(map.address.value, 0x7f0000001000u);
  EXPECT_EQ(map.size_bytes, 0x2000u);
  EXPECT_EQ(map.offset_bytes, 0x3000u);
  EXPECT_EQ(to_hex(map.build_id), "0001020304050607");
  EXPECT_EQ(map.protection, 5u);
  EXPECT_EQ(map.path, "/usr/lib/libm.so.6");
}

TEST(Events, Mmap2WithDeviceAndInode) {
  Builder b(kRecordMmap2, kMiscUser);
  b.u32(5).u32(6).u64(1).u64(2).u64(3).u32(8).u32(1).u64(123456).u64(0).u32(7).u32(1).text("a");
  auto map = body<MmapEvent>(b.done());
  EXPECT_TRUE(map.build_id.empty());
  EXPECT_EQ(map.major, 8u);
  EXPECT_EQ(map.inode, 123456u);
  EXPECT_EQ(map.path, "a");
}

TEST(Events, TheTrailerTellsWhoWhenAndWhere) {
  Builder b(kRecordComm, kMiscCommExec);
  b.u32(5).u32(6).text("worker");
  auto event = parse_record(trailer(b).done(), kWithTrailer);
  ASSERT_TRUE(event);
  EXPECT_EQ(*event->id.thread, (ThreadId{10, 11}));
  EXPECT_EQ(*event->id.time_ns, 777u);
  EXPECT_EQ(*event->id.cpu, 3u);
  EXPECT_EQ(*event->id.id, 42u);
  const auto& comm = std::get<CommEvent>(event->body);
  EXPECT_TRUE(comm.is_exec);
  EXPECT_EQ(comm.name, "worker");
}

TEST(Events, ForkAndExit) {
  auto fork = body<TaskEvent>(Builder(kRecordFork).u32(7).u32(5).u32(8).u32(6).u64(99).done());
  EXPECT_TRUE(fork.begins);
  EXPECT_EQ(fork.thread, (ThreadId{7, 8}));
  EXPECT_EQ(fork.parent, (ThreadId{5, 6}));
  EXPECT_EQ(fork.time_ns, 99u);
  EXPECT_FALSE(
      body<TaskEvent>(Builder(kRecordExit).u32(7).u32(5).u32(8).u32(6).u64(99).done()).begins);
}

TEST(Events, SwitchesOfAThreadAndOfACpu) {
  auto in = body<SwitchEvent>(Builder(kRecordSwitch).done());
  EXPECT_FALSE(in.out);
  EXPECT_FALSE(in.other);
  auto out = body<SwitchEvent>(
      Builder(kRecordSwitchCpuWide, kMiscSwitchOut | kMiscSwitchOutPreempt).u32(3).u32(4).done());
  EXPECT_TRUE(out.out);
  EXPECT_TRUE(out.preempted);
  EXPECT_EQ(*out.other, (ThreadId{3, 4}));
}

TEST(Events, AuxLostThrottleAndItraceStart) {
  auto aux =
      body<AuxEvent>(Builder(kRecordAux).u64(10).u64(4096).u64(kAuxOverwrite | kAuxPartial).done());
  EXPECT_EQ(aux.offset_bytes, 10u);
  EXPECT_EQ(aux.size_bytes, 4096u);
  EXPECT_EQ(aux.flags, kAuxOverwrite | kAuxPartial);
  EXPECT_EQ(body<LostEvent>(Builder(kRecordLost).u64(1).u64(5).done()).count, 5u);
  EXPECT_TRUE(body<LostEvent>(Builder(kRecordLostSamples).u64(5).done()).samples_only);
  EXPECT_TRUE(body<ThrottleEvent>(Builder(kRecordThrottle).u64(9).u64(1).u64(1).done()).begins);
  EXPECT_FALSE(body<ThrottleEvent>(Builder(kRecordUnthrottle).u64(9).u64(1).u64(1).done()).begins);
  EXPECT_EQ(body<ItraceStartEvent>(Builder(kRecordItraceStart).u32(1).u32(2).done()).thread.tid, 2);
}

TEST(Events, ASampleWithEveryFieldThatIsRead) {
  RecordFormat format;
  format.sample_type = kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime | kSampleAddr |
                       kSampleId | kSampleStreamId | kSampleCpu | kSamplePeriod | kSampleRead |
                       kSampleRaw | kSampleBranchStack | kSampleRegsUser;
  format.branch_sample_type = kBranchUser | kBranchAny | kBranchHwIndex;
  format.sample_regs_user = 1 << 5 | 1 << 8;
  Builder b(kRecordSample);
  b.u64(1).u64(0x401000).u32(2).u32(3).u64(4).u64(5).u64(6).u64(7).u64(8).u64(9).u64(77);
  b.u32(12).u32(0).u64(0);
  b.u64(2).u64(~0ull).u64(0x10).u64(0x20).u64(1 | 123 << 4).u64(0x30).u64(0x40).u64(2 | 4 | 8);
  b.u64(2).u64(0xaa).u64(0xbb);
  auto sample = body<Sample>(b.done(), format);
  EXPECT_EQ(sample.ip->value, 0x401000u);
  EXPECT_EQ(*sample.thread, (ThreadId{2, 3}));
  EXPECT_EQ(*sample.time_ns, 4u);
  EXPECT_EQ(sample.address->value, 5u);
  EXPECT_EQ(*sample.id, 6u);
  EXPECT_EQ(*sample.cpu, 8u);
  EXPECT_EQ(*sample.period, 9u);
  EXPECT_EQ(*sample.count, 77u);
  ASSERT_EQ(sample.branches.size(), 2u);
  EXPECT_EQ(sample.branches[0].from.value, 0x10u);
  EXPECT_TRUE(sample.branches[0].mispredicted);
  EXPECT_EQ(sample.branches[0].cycles, 123u);
  EXPECT_TRUE(sample.branches[1].predicted);
  EXPECT_TRUE(sample.branches[1].in_transaction);
  EXPECT_TRUE(sample.branches[1].aborted);
  EXPECT_EQ(sample.registers, (std::vector<std::uint64_t>{0xaa, 0xbb}));
}

TEST(Events, RecordsCutAnywhereAreErrors) {
  Builder b(kRecordMmap2, kMiscUser);
  b.u32(5).u32(6).u64(1).u64(2).u64(3).u32(8).u32(1).u64(123456).u64(0).u32(7).u32(1);
  Bytes whole = b.done();
  ASSERT_TRUE(parse_record(whole, {}));
  for (std::uint16_t size = 0; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + size);
    if (size >= 8) std::memcpy(cut.data() + 6, &size, 2);
    auto event = parse_record(cut, {});
    ASSERT_FALSE(event) << size;
    EXPECT_EQ(event.error().code, ErrorCode::kBadInput);
  }
}

TEST(Events, AStackLongerThanItsRecordIsAnError) {
  RecordFormat format{kSampleBranchStack, false, kBranchUser | kBranchAny, 0};
  EXPECT_FALSE(parse_record(Builder(kRecordSample).u64(3).u64(1).u64(2).u64(0).done(), format));
  EXPECT_FALSE(parse_record(Builder(kRecordSample).u64(~0ull).done(), format));
  format.sample_type |= kSampleCallchain;
  EXPECT_TRUE(parse_record(Builder(kRecordSample).u64(1).u64(2).u64(0).done(), format));
  EXPECT_FALSE(parse_record(Builder(kRecordSample).u64(4).u64(2).u64(0).done(), format));
  EXPECT_FALSE(parse_record(Builder(kRecordSample).u64(~0ull).u64(0).done(), format));
}

TEST(Events, UnknownTypesAreNoErrors) {
  auto event = parse_record(Builder(4711).u64(1).done(), {});
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, 4711u);
  EXPECT_TRUE(std::holds_alternative<OtherEvent>(event->body));
}

}  // namespace
}  // namespace tailtrace::perf
