#include "decoder/perf/events.h"

#include <fmt/format.h>

#include <bit>

#include "decoder/perf/field_reader.h"

namespace tailtrace::perf {
namespace {

// The trailer has these fields in this order, each 8 bytes.
std::size_t sample_id_size(const RecordFormat& format) {
  constexpr std::uint64_t kFields =
      kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu | kSampleIdentifier;
  return format.sample_id_all ? 8u * std::popcount(format.sample_type & kFields) : 0;
}

SampleId read_sample_id(FieldReader fields, std::uint64_t type) {
  SampleId id;
  if (type & kSampleTid) id.thread = fields.thread();
  if (type & kSampleTime) id.time_ns = fields.u64();
  if (type & kSampleId) id.id = fields.u64();
  if (type & kSampleStreamId) fields.u64();
  if (type & kSampleCpu) id.cpu = static_cast<std::uint32_t>(fields.u64());
  if (type & kSampleIdentifier) id.id = fields.u64();
  return id;
}

MmapEvent read_mmap(FieldReader& fields, RecordHeader header) {
  MmapEvent event;
  event.thread = fields.thread();
  event.address = {fields.u64()};
  event.size_bytes = fields.u64();
  event.offset_bytes = fields.u64();
  if (header.type == kRecordMmap2) {
    if (header.misc & kMiscMmapBuildId) {
      std::uint8_t size = fields.u8();
      fields.skip(3);
      ByteSpan id = fields.take(20);
      if (size <= id.size()) event.build_id.assign(id.begin(), id.begin() + size);
    } else {
      event.major = fields.u32();
      event.minor = fields.u32();
      event.inode = fields.u64();
      fields.u64();  // the inode's generation
    }
    event.protection = fields.u32();
    event.flags = fields.u32();
  }
  event.path = fields.text();
  return event;
}

CommEvent read_comm(FieldReader& fields, RecordHeader header) {
  CommEvent event;
  event.thread = fields.thread();
  event.is_exec = (header.misc & kMiscCommExec) != 0;
  event.name = fields.text();
  return event;
}

TaskEvent read_task(FieldReader& fields, RecordHeader header) {
  TaskEvent event;
  event.begins = header.type == kRecordFork;
  event.thread.pid = fields.i32();
  event.parent.pid = fields.i32();
  event.thread.tid = fields.i32();
  event.parent.tid = fields.i32();
  event.time_ns = fields.u64();
  return event;
}

SwitchEvent read_switch(FieldReader& fields, RecordHeader header) {
  SwitchEvent event;
  event.out = (header.misc & kMiscSwitchOut) != 0;
  event.preempted = event.out && (header.misc & kMiscSwitchOutPreempt) != 0;
  if (header.type == kRecordSwitchCpuWide) event.other = fields.thread();
  return event;
}

BranchEntry read_branch(FieldReader& fields) {
  BranchEntry entry;
  entry.from = {fields.u64()};
  entry.to = {fields.u64()};
  std::uint64_t flags = fields.u64();
  entry.mispredicted = (flags & 1) != 0;
  entry.predicted = (flags & 2) != 0;
  entry.in_transaction = (flags & 4) != 0;
  entry.aborted = (flags & 8) != 0;
  entry.cycles = static_cast<std::uint16_t>(flags >> 4);
  return entry;
}

void read_branch_stack(FieldReader& fields, const RecordFormat& format, Sample& sample) {
  std::uint64_t count = fields.u64();
  if (format.branch_sample_type & kBranchHwIndex) fields.u64();
  if (count > kMaxBranchEntries) return fields.refuse();
  for (std::uint64_t i = 0; i < count && fields.ok(); ++i)
    sample.branches.push_back(read_branch(fields));
  if (format.branch_sample_type & kBranchCounters) fields.skip(8 * count);
}

void skip_callchain(FieldReader& fields) {
  const std::uint64_t count = fields.u64();
  if (count > kMaxBranchEntries) return fields.refuse();
  fields.skip(8 * count);
}

void read_registers(FieldReader& fields, const RecordFormat& format, Sample& sample) {
  if (fields.u64() == 0) return;  // no user registers: a kernel thread
  for (int n = std::popcount(format.sample_regs_user); n > 0; --n)
    sample.registers.push_back(fields.u64());
}

Sample read_sample(FieldReader& fields, const RecordFormat& format) {
  Sample sample;
  const std::uint64_t type = format.sample_type;
  if (type & kSampleIdentifier) sample.id = fields.u64();
  if (type & kSampleIp) sample.ip = Address{fields.u64()};
  if (type & kSampleTid) sample.thread = fields.thread();
  if (type & kSampleTime) sample.time_ns = fields.u64();
  if (type & kSampleAddr) sample.address = Address{fields.u64()};
  if (type & kSampleId) sample.id = fields.u64();
  if (type & kSampleStreamId) fields.u64();
  if (type & kSampleCpu) sample.cpu = static_cast<std::uint32_t>(fields.u64());
  if (type & kSamplePeriod) sample.period = fields.u64();
  if (type & kSampleRead) sample.count = fields.u64();
  if (type & kSampleCallchain) skip_callchain(fields);
  if (type & kSampleRaw) fields.take(fields.u32());
  if (type & kSampleBranchStack) read_branch_stack(fields, format, sample);
  if (type & kSampleRegsUser) read_registers(fields, format, sample);
  return sample;
}

EventBody read_body(FieldReader& fields, RecordHeader header, const RecordFormat& format) {
  switch (header.type) {
    case kRecordMmap:
    case kRecordMmap2:
      return read_mmap(fields, header);
    case kRecordComm:
      return read_comm(fields, header);
    case kRecordFork:
    case kRecordExit:
      return read_task(fields, header);
    case kRecordSwitch:
    case kRecordSwitchCpuWide:
      return read_switch(fields, header);
    case kRecordItraceStart:
      return ItraceStartEvent{fields.thread()};
    case kRecordAux: {
      AuxEvent event;
      event.offset_bytes = fields.u64();
      event.size_bytes = fields.u64();
      event.flags = fields.u64();
      return event;
    }
    case kRecordLost:
      fields.u64();  // the event's identifier
      return LostEvent{fields.u64(), false};
    case kRecordLostSamples:
      return LostEvent{fields.u64(), true};
    case kRecordThrottle:
    case kRecordUnthrottle:
      return ThrottleEvent{header.type == kRecordThrottle, fields.u64()};
    case kRecordSample:
      return read_sample(fields, format);
    default:
      return OtherEvent{};
  }
}

tl::unexpected<Error> unreadable(RecordHeader header, std::string why) {
  return fail(ErrorCode::kBadInput,
              fmt::format("cannot read a perf record of type {} and {} bytes", header.type,
                          header.size_bytes),
              std::move(why));
}

constexpr std::uint64_t kReadableSampleBits =
    kSampleIp | kSampleTid | kSampleTime | kSampleAddr | kSampleRead | kSampleCallchain |
    kSampleId | kSampleCpu | kSamplePeriod | kSampleStreamId | kSampleRaw | kSampleBranchStack |
    kSampleRegsUser | kSampleIdentifier;

}  // namespace

Result<ParsedRecord> parse_record(ByteSpan record, const RecordFormat& format) {
  RecordHeader header;
  if (record.size() >= sizeof header) header = load<RecordHeader>(record);
  if (header.size_bytes < sizeof header || header.size_bytes != record.size())
    return unreadable(header, fmt::format("there are {} bytes", record.size()));
  ByteSpan body = record.subspan(sizeof header);
  ParsedRecord event;
  event.type = header.type;
  if (header.type == kRecordSample && (format.sample_type & ~kReadableSampleBits) != 0)
    return unreadable(header, fmt::format("it was sampled with fields {:#x}", format.sample_type));
  if (header.type != kRecordSample) {
    std::size_t trailer = sample_id_size(format);
    if (trailer > body.size()) return unreadable(header, "it is shorter than its trailer");
    event.id =
        read_sample_id(FieldReader(body.last(trailer)), trailer == 0 ? 0 : format.sample_type);
    body = body.first(body.size() - trailer);
  }
  FieldReader fields(body);
  event.body = read_body(fields, header, format);
  if (!fields.ok()) return unreadable(header, "its fields do not fit into it");
  return event;
}

}  // namespace tailtrace::perf
