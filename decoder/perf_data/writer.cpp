#include "decoder/perf_data/writer.h"

#include <algorithm>

#include "decoder/perf/abi.h"
#include "decoder/perf_data/format.h"
#include "decoder/pt/packets/packet_reader.h"
#include "decoder/pt/packets/packet_writer.h"

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

// From one moment to the next. Far: perf adds a few ticks for each instruction since the last TSC.
// Nanoseconds are taken to be ticks.
constexpr std::uint64_t kMoment_ns = 100'000'000'000;
static_assert(PerfDataWriter::kMaxMoment * kMoment_ns < 1ull << 56);

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

Bytes auxtrace_info(WrittenTimes times) {
  std::uint64_t words[kInfoWords] = {};
  words[kInfoPmuType] = kPmuType;
  words[kInfoTscBit] = kTscBit;
  if (times == WrittenTimes::kMoments) words[kInfoTimeMult] = words[kInfoTimeIsKnown] = 1;
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

// With the time behind each PSB.
Bytes timed(ByteSpan trace, std::uint64_t time) {
  pt::PacketWriter tsc;
  tsc.tsc(time);
  Bytes all;
  std::size_t done = 0;
  while (auto psb = pt::find_psb(trace, done)) {
    const std::size_t behind = *psb + pt::kPsbSize_bytes;
    append(all, trace.subspan(done, behind - done));
    append(all, tsc.bytes());
    done = behind;
  }
  append(all, trace.subspan(done));
  return all;
}

}  // namespace

void PerfDataWriter::add_mappings(std::int32_t pid, std::span<const WrittenMapping> mappings,
                                  std::uint64_t moment) {
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
    // Before whatever runs then.
    records_.push_back({kRecordMmap2, misc, {pid, pid}, moment * kMoment_ns - 1, body.take()});
  }
}

void PerfDataWriter::add_thread(ThreadId thread, const std::string& name,
                                std::vector<WrittenTrace> trace) {
  constexpr std::size_t kMaxName_bytes = 15;
  const std::uint64_t moment = trace.empty() ? 1 : trace.front().moment;
  Words comm;
  comm.put(thread.pid).put(thread.tid).put_text(name.substr(0, kMaxName_bytes));
  records_.push_back({kRecordComm, kMiscUser, thread, moment * kMoment_ns - 1, comm.take()});
  threads_.push_back({thread.tid, std::move(trace)});
}

// With the trailer that says of which event and thread it is.
Bytes PerfDataWriter::whole(const Record& record, WrittenTimes times) {
  Words trailer;
  trailer.put(record.thread.pid).put(record.thread.tid);
  if (times == WrittenTimes::kMoments) trailer.put(record.time_ns);
  const Bytes last = trailer.put(kEventId).take();
  const std::size_t size = 8 + record.body.size() + last.size();
  Words words;
  words.put(RecordHeader{record.type, record.misc, static_cast<std::uint16_t>(size)});
  return words.put_bytes(record.body).put_bytes(last).take();
}

Bytes PerfDataWriter::whole(const Thread& thread, std::uint32_t queue, WrittenTimes times) {
  Bytes trace;
  std::uint64_t reference = 0;  // when it was read: perf believes no TSC without it
  for (const WrittenTrace& piece : thread.trace) {
    if (times == WrittenTimes::kMoments) reference = piece.moment * kMoment_ns;
    append(trace, reference != 0 ? timed(piece.bytes, reference) : piece.bytes);
  }
  Words aux;
  aux.put(RecordHeader{kRecordAuxtrace, 0, 48});
  aux.put<std::uint64_t>((trace.size() + 7) & ~7ull).put<std::uint64_t>(0).put(reference);
  aux.put(queue).put(thread.tid).put<std::int32_t>(-1).put<std::uint32_t>(0);
  return aux.put_bytes(trace).fill_up().take();
}

Bytes PerfDataWriter::data(WrittenTimes times) const {
  Bytes data = auxtrace_info(times);
  for (const Record& record : records_) append(data, whole(record, times));
  std::uint32_t queue = 0;
  for (const Thread& thread : threads_) append(data, whole(thread, queue++, times));
  return data;
}

Bytes PerfDataWriter::attr(WrittenTimes times) const {
  const bool is_timed = times == WrittenTimes::kMoments;
  std::uint64_t config = kPtBit | kBranchBit;
  if (!return_compression_) config |= kNoRetCompBit;
  if (is_timed) config |= kTscBit;
  Bytes attr(kAttrSize_bytes);
  auto put = [&](std::size_t at, auto value) { std::memcpy(&attr[at], &value, sizeof value); };
  put(kAttrType, kPmuType);
  put(kAttrSize, kAttrSize_bytes);
  put(kAttrConfig, config);
  put(kAttrSamplePeriod, std::uint64_t{1});
  put(kAttrSampleType, kSampleType | (is_timed ? std::uint64_t{kSampleTime} : 0));
  put(kAttrFlags,
      std::uint64_t{kAttrDisabled | kAttrExcludeKernel | kAttrExcludeHv | kAttrSampleIdAll});
  return attr;
}

Bytes PerfDataWriter::finish(WrittenTimes times) const {
  constexpr std::uint64_t kAttrs = kHeaderFileBytes + 8;  // behind the one identifier
  constexpr std::uint64_t kAttrEntry_bytes = kAttrSize_bytes + 16;
  const Bytes data = this->data(times);
  const std::uint64_t begin = kAttrs + kAttrEntry_bytes, end = begin + data.size();
  constexpr std::string_view kArch = "x86_64";
  Words file;
  file.put_bytes(as_bytes(kPerfDataMagic)).put<std::uint64_t>(kHeaderFileBytes);
  file.put(kAttrEntry_bytes).put(kAttrs).put(kAttrEntry_bytes);
  file.put(begin).put<std::uint64_t>(data.size());
  file.put<std::uint64_t>(0).put<std::uint64_t>(0);  // of the event types of old files
  file.put<std::uint64_t>(1 << kFeatureArch);
  for (int word = 1; word < 4; ++word) file.put<std::uint64_t>(0);
  file.put(kEventId);
  file.put_bytes(attr(times)).put<std::uint64_t>(kHeaderFileBytes).put<std::uint64_t>(8);
  file.put_bytes(data);
  file.put<std::uint64_t>(end + 16).put<std::uint64_t>(12);
  file.put<std::uint32_t>(8).put_text(kArch);
  return file.take();
}

}  // namespace tailtrace::perf
