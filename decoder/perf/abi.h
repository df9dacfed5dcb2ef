// The numbers of Linux's perf events as data: what the kernel writes into rings and control pages,
// declared in our own words, so that a buffer can be read on any machine and under any headers.
//
// Source of every number: include/uapi/linux/perf_event.h, which the kernel never changes, only
// extends. Threading: constants and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tailtrace::perf {

// What every record in a data ring begins with.
struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::uint16_t size_bytes = 0;  // of the whole record, this header included

  friend bool operator==(const RecordHeader&, const RecordHeader&) = default;
};
static_assert(sizeof(RecordHeader) == 8);

enum RecordType : std::uint32_t {
  kRecordMmap = 1,
  kRecordLost = 2,
  kRecordComm = 3,
  kRecordExit = 4,
  kRecordThrottle = 5,
  kRecordUnthrottle = 6,
  kRecordFork = 7,
  kRecordSample = 9,
  kRecordMmap2 = 10,
  kRecordAux = 11,
  kRecordItraceStart = 12,
  kRecordLostSamples = 13,
  kRecordSwitch = 14,
  kRecordSwitchCpuWide = 15,
  kRecordKsymbol = 17,
  kRecordTextPoke = 20,
};

enum RecordMisc : std::uint16_t {
  kMiscCpuModeMask = 7,
  kMiscKernel = 1,
  kMiscUser = 2,
  kMiscCommExec = 1 << 13,          // COMM: the thread executed a new program
  kMiscSwitchOut = 1 << 13,         // SWITCH: the thread leaves the CPU
  kMiscSwitchOutPreempt = 1 << 14,  // ... and wanted to stay
  kMiscMmapBuildId = 1 << 14,       // MMAP2: a build id stands in place of device and inode
};

// attr.sample_type: which fields a sample has, and which the trailer of the other records has.
enum SampleBits : std::uint64_t {
  kSampleIp = 1 << 0,
  kSampleTid = 1 << 1,
  kSampleTime = 1 << 2,
  kSampleAddr = 1 << 3,
  kSampleRead = 1 << 4,
  kSampleCallchain = 1 << 5,
  kSampleId = 1 << 6,
  kSampleCpu = 1 << 7,
  kSamplePeriod = 1 << 8,
  kSampleStreamId = 1 << 9,
  kSampleRaw = 1 << 10,
  kSampleBranchStack = 1 << 11,
  kSampleRegsUser = 1 << 12,
  kSampleIdentifier = 1 << 16,
};

// attr.branch_sample_type: the bits that change what a branch stack looks like in memory.
enum BranchSampleBits : std::uint64_t {
  kBranchUser = 1 << 0,
  kBranchAny = 1 << 3,
  kBranchTypeSave = 1 << 16,
  kBranchHwIndex = 1 << 17,
  kBranchCounters = 1 << 19,
};

// PERF_RECORD_AUX flags.
enum AuxFlags : std::uint64_t {
  kAuxTruncated = 1,  // no space: the trace has a hole behind this stretch
  kAuxOverwrite = 2,  // from an overwriting area
  kAuxPartial = 4,    // the hardware could not trace all of it
  kAuxCollision = 8,  // samples were lost to each other
};

// Offsets in the control page, the first page of every mapped ring.
enum ControlPage : std::size_t {
  kPageLock = 8,           // u32: odd or changed means read again
  kPageCapabilities = 40,  // u64
  kPageTimeShift = 50,     // u16
  kPageTimeMult = 52,      // u32
  kPageTimeZero = 64,      // u64
  kPageDataHead = 1024,    // u64: written by the kernel, read with acquire
  kPageDataTail = 1032,
  kPageDataOffset = 1040,
  kPageDataSize = 1048,
  kPageAuxHead = 1056,
  kPageAuxTail = 1064,
  kPageAuxOffset = 1072,
  kPageAuxSize = 1080,
  kPageUsedSize_bytes = 1088,
};
constexpr std::uint64_t kCapUserTimeZero = 1 << 4;  // bit of the capabilities

}  // namespace tailtrace::perf
