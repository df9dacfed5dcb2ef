#include "decoder/perf_data/writer.h"

#include <algorithm>

#include "decoder/perf/abi.h"
#include "decoder/perf_data/format.h"

namespace tailtrace::perf {
namespace {

// What a PMU of Intel PT is like on the machine that never was.
constexpr std::uint32_t kPmuType = 8;
constexpr std::uint64_t kPtBit = 1, kCycBit = 1 << 1, kMtcBit = 1 << 9, kTscBit = 1 << 10;
constexpr std::uint64_t kNoRetCompBit = 1 << 11, kBranchBit = 1 << 13, kMtcFreqBits = 0x3c000;

constexpr std::uint64_t kEventId = 1;
constexpr std::uint32_t kAttrSize_bytes = 112;
constexpr std::uint64_t kSampleType = kSampleIp | kSampleTid | kSampleIdentifier;
constexpr std::size_t kMaxText_bytes = 4096;

class Words {
 public:
  template <class T>
  Words& put(T value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Words& put_bytes(ByteSpan bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // With the zero behind it, filled up to whole words.
  Words& put_text(std::string_view text) {
    put_bytes(as_bytes(text.substr(0, kMaxText_bytes)));
    bytes_.push_back(0);
    return fill_up();
  }
  Words& fill_up() {
    bytes_.resize((bytes_.size() + 7) & ~std::size_t{7});
    return *this;
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

void append(Bytes& to, ByteSpan bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes auxtrace_info() {
  std::uint64_t words[kInfoWords] = {};
  words[kInfoPmuType] = kPmuType;
  words[kInfoTscBit] = kTscBit;
  words[kInfoNoRetCompBit] = kNoRetCompBit;
  words[kInfoMtcBit] = kMtcBit;
  words[kInfoMtcFreqBits] = kMtcFreqBits;
  words[kInfoCycBit] = kCycBit;
  Words record;
  record.put(RecordHeader{kRecordAuxtraceInfo, 0, 16 + sizeof words});
  record.put<std::uint32_t>(kAuxtracePt).put<std::uint32_t>(0);
  for (std::uint64_t word : words) record.put(word);
  return record.take();
}

}  // namespace

PerfDataWriter::PerfDataWriter(bool return_compression)
    : return_compression_(return_compression), data_(auxtrace_info()) {}

// With the trailer that says of which event and thread it is.
void PerfDataWriter::put_record(std::uint32_t type, std::uint16_t misc, Bytes body,
                                ThreadId thread) {
  Words record;
  record.put(RecordHeader{type, misc, static_cast<std::uint16_t>(8 + body.size() + 16)});
  record.put_bytes(body).put(thread.pid).put(thread.tid).put(kEventId);
  append(data_, record.take());
}

void PerfDataWriter::add_mappings(std::int32_t pid, std::span<const WrittenMapping> mappings) {
  constexpr std::uint32_t kReadExecute = 5, kPrivate = 2;
  constexpr std::size_t kId_bytes = 20;
  for (const WrittenMapping& mapping : mappings) {
    Words body;
    body.put(pid).put(pid).put(mapping.begin.value).put(mapping.size_bytes);
    body.put(mapping.file_offset_bytes);
    std::uint16_t misc = kMiscUser;
    Bytes id = mapping.build_id;
    if (!id.empty()) misc |= kMiscMmapBuildId;
    const std::size_t size = std::min(id.size(), kId_bytes);
    id.resize(kId_bytes);
    // Without a build id the same bytes are device, inode and its generation: none.
    body.put(static_cast<std::uint32_t>(size)).put_bytes(id);
    body.put(kReadExecute).put(kPrivate).put_text(mapping.path);
    put_record(kRecordMmap2, misc, body.take(), {pid, pid});
  }
}

void PerfDataWriter::add_thread(ThreadId thread, const std::string& name, ByteSpan trace) {
  constexpr std::size_t kMaxName_bytes = 15;
  Words comm;
  comm.put(thread.pid).put(thread.tid).put_text(name.substr(0, kMaxName_bytes));
  put_record(kRecordComm, kMiscUser, comm.take(), thread);
  Words aux;
  aux.put(RecordHeader{kRecordAuxtrace, 0, 48});
  aux.put<std::uint64_t>((trace.size() + 7) & ~7ull).put<std::uint64_t>(0).put<std::uint64_t>(0);
  aux.put(queues_++).put(thread.tid).put<std::int32_t>(-1).put<std::uint32_t>(0);
  append(data_, aux.put_bytes(trace).fill_up().take());
}

Bytes PerfDataWriter::attr() const {
  const std::uint64_t config =
      kPtBit | kBranchBit | (return_compression_ ? std::uint64_t{0} : kNoRetCompBit);
  Bytes attr(kAttrSize_bytes);
  auto put = [&](std::size_t at, auto value) { std::memcpy(&attr[at], &value, sizeof value); };
  put(kAttrType, kPmuType);
  put(kAttrSize, kAttrSize_bytes);
  put(kAttrConfig, config);
  put(kAttrSamplePeriod, std::uint64_t{1});
  put(kAttrSampleType, std::uint64_t{kSampleType});
  put(kAttrFlags,
      std::uint64_t{kAttrDisabled | kAttrExcludeKernel | kAttrExcludeHv | kAttrSampleIdAll});
  return attr;
}

Bytes PerfDataWriter::finish() const {
  constexpr std::uint64_t kAttrs = kHeaderFileBytes + 8;  // behind the one identifier
  constexpr std::uint64_t kAttrEntry_bytes = kAttrSize_bytes + 16;
  const std::uint64_t data = kAttrs + kAttrEntry_bytes;
  const std::uint64_t features = data + data_.size();
  constexpr std::string_view kArch = "x86_64";
  Words file;
  file.put_bytes(as_bytes(kPerfDataMagic)).put<std::uint64_t>(kHeaderFileBytes);
  file.put(kAttrEntry_bytes).put(kAttrs).put(kAttrEntry_bytes);
  file.put(data).put<std::uint64_t>(data_.size());
  file.put<std::uint64_t>(0).put<std::uint64_t>(0);  // of the event types of old files
  file.put<std::uint64_t>(1 << kFeatureArch);
  for (int word = 1; word < 4; ++word) file.put<std::uint64_t>(0);
  file.put(kEventId);
  file.put_bytes(attr()).put<std::uint64_t>(kHeaderFileBytes).put<std::uint64_t>(8);
  file.put_bytes(data_);
  file.put<std::uint64_t>(features + 16).put<std::uint64_t>(12);
  file.put<std::uint32_t>(8).put_text(kArch);
  return file.take();
}

}  // namespace tailtrace::perf
