// The numbers of perf.data files, as `perf record` writes them and PERF_DATA.md draws them: what
// stands around the kernel's records, and the records that perf adds to them.
//
// Source: the documentation that comes with perf, perf.data-file-format.txt, and files that it
// wrote. Threading: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tailtrace::perf {

constexpr std::string_view kPerfDataMagic = "PERFILE2";

// The header of a file; that of a pipe ends behind its size.
enum PerfDataHeader : std::size_t {
  kHeaderSize = 8,       // u64
  kHeaderAttrSize = 16,  // u64: of an attr with the {offset, size} of its ids
  kHeaderAttrs = 24,     // {offset, size}
  kHeaderData = 40,      // {offset, size}
  kHeaderFeatures = 72,  // 256 bits
  kHeaderFileBytes = 104,
  kHeaderPipeBytes = 16,
};

// Bits of the header, each with a section behind the data.
enum PerfDataFeature : unsigned {
  kFeatureBuildId = 2,
  kFeatureArch = 6,
  kFeatureCpuId = 9,
  kFeatureAuxtrace = 18,
  kFeatureDirectory = 24,
  kFeatureCount = 256,
};

// struct perf_event_attr.
enum AttrField : std::size_t {
  kAttrType = 0,               // u32
  kAttrSize = 4,               // u32
  kAttrConfig = 8,             // u64
  kAttrSamplePeriod = 16,      // u64
  kAttrSampleType = 24,        // u64
  kAttrFlags = 40,             // u64
  kAttrBranchSampleType = 72,  // u64
  kAttrLeastSize_bytes = 64,
};
enum AttrFlags : std::uint64_t {
  kAttrDisabled = 1 << 0,
  kAttrInherit = 1 << 1,
  kAttrExcludeKernel = 1 << 5,
  kAttrExcludeHv = 1 << 6,
  kAttrMmap = 1 << 8,
  kAttrComm = 1 << 9,
  kAttrFreq = 1 << 10,
  kAttrTask = 1 << 13,
  kAttrSampleIdAll = 1 << 18,
  kAttrMmap2 = 1 << 23,
  kAttrUseClockId = 1 << 25,
};

// Records that perf writes beside the kernel's.
enum PerfRecordType : std::uint32_t {
  kRecordUserFirst = 64,
  kRecordHeaderAttr = 64,
  kRecordHeaderTracingData = 66,  // more bytes follow it
  kRecordHeaderBuildId = 67,
  kRecordFinishedRound = 68,
  kRecordAuxtraceInfo = 70,
  kRecordAuxtrace = 71,  // more bytes follow it
  kRecordHeaderFeature = 80,
  kRecordCompressed = 81,
  kRecordCompressed2 = 83,
};
constexpr std::uint16_t kMiscBuildIdSize = 1 << 15;  // in a build id's record

// The first word of an AUXTRACE_INFO.
enum AuxtraceType : std::uint32_t { kAuxtraceNone = 0, kAuxtracePt = 1, kAuxtraceBts = 2 };

// Its 64-bit words behind that; intel_bts has the first five, and behind them
// whether it was recorded in snapshots.
enum AuxtraceInfo : std::size_t {
  kInfoPmuType = 0,
  kInfoTimeShift = 1,
  kInfoTimeMult = 2,
  kInfoTimeZero = 3,
  kInfoTimeIsKnown = 4,
  kInfoBtsSnapshot = 5,
  kInfoTscBit = 5,
  kInfoNoRetCompBit = 6,
  kInfoSwitches = 7,
  kInfoPtSnapshot = 8,
  kInfoPerCpu = 9,
  kInfoMtcBit = 10,
  kInfoMtcFreqBits = 11,
  kInfoTscCtcN = 12,
  kInfoTscCtcD = 13,
  kInfoCycBit = 14,
  kInfoMaxNonTurboRatio = 15,
  kInfoFilterLength = 16,
  kInfoWords = 17,
};

}  // namespace tailtrace::perf
