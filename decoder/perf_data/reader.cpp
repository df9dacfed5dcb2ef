#include "decoder/perf_data/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tailtrace::perf {
namespace {

// What is behind the fields of a record of this event, up to its time or its identifier, in words
// of 8 bytes; nothing where it has none.
std::optional<std::size_t> place_in_sample(std::uint64_t type, std::uint64_t field) {
  if ((type & field) == 0) return std::nullopt;
  if (field == kSampleIdentifier) return 0;
  constexpr std::uint64_t kOrder[] = {kSampleIdentifier, kSampleIp,   kSampleTid,
                                      kSampleTime,       kSampleAddr, kSampleId};
  std::size_t words = 0;
  for (std::uint64_t earlier : kOrder) {
    if (earlier == field) break;
    words += (type & earlier) != 0;
  }
  return words;
}

// The same for the trailer of other records, in words from the record's end.
std::optional<std::size_t> place_in_trailer(std::uint64_t type, std::uint64_t field) {
  if ((type & field) == 0) return std::nullopt;
  constexpr std::uint64_t kOrder[] = {kSampleIdentifier, kSampleCpu,  kSampleStreamId,
                                      kSampleId,         kSampleTime, kSampleTid};
  std::size_t words = 1;
  for (std::uint64_t later : kOrder) {
    if (later == field) break;
    words += (type & later) != 0;
  }
  return words;
}

std::optional<std::uint64_t> word_of(ByteSpan record, RecordHeader header, std::uint64_t type,
                                     bool has_trailer, std::uint64_t field) {
  if (header.type == kRecordSample) {
    auto words = place_in_sample(type, field);
    if (!words) return std::nullopt;
    const std::size_t at = sizeof header + 8 * *words;
    return at + 8 > record.size() ? std::nullopt : std::optional(load<std::uint64_t>(record, at));
  }
  auto words = has_trailer ? place_in_trailer(type, field) : std::nullopt;
  if (!words || sizeof header + 8 * *words > record.size()) return std::nullopt;
  return load<std::uint64_t>(record, record.size() - 8 * *words);
}

std::uint64_t id_field(std::uint64_t type) {
  return (type & kSampleIdentifier) != 0 ? kSampleIdentifier : kSampleId;
}

// What is read out of records later; the rest is passed over here.
bool is_wanted(RecordHeader header, const EventAttr& attr) {
  switch (header.type) {
    case kRecordMmap:
    case kRecordMmap2:
    case kRecordComm:
    case kRecordFork:
    case kRecordExit:
    case kRecordAux:
    case kRecordItraceStart:
    case kRecordSwitch:
    case kRecordSwitchCpuWide:
    case kRecordLost:
      return true;
    case kRecordSample:
      return attr.has_branches();
    default:
      return false;
  }
}

}  // namespace

PerfDataReader::PerfDataReader(ByteSpan bytes, const std::string& name,
                               std::shared_ptr<const void> owner, const PerfDataLimits& limits)
    : bytes_(bytes), limits_(limits) {
  data_.name = name;
  if (owner) data_.owners.push_back(std::move(owner));
}

tl::unexpected<Error> PerfDataReader::bad(std::string why, std::string fix) const {
  return fail(ErrorCode::kBadInput, "cannot read " + data_.name, std::move(why), std::move(fix));
}

void PerfDataReader::problem(std::string why, std::string fix) {
  data_.problems.push_back({ErrorCode::kBadInput, "not all of " + data_.name + " can be used",
                            std::move(why), std::move(fix), ""});
}

ByteSpan PerfDataReader::at(Place place) const {
  if (place.offset > bytes_.size() || place.size > bytes_.size() - place.offset) return {};
  return bytes_.subspan(place.offset, place.size);
}

PerfDataReader::Place PerfDataReader::place_at(std::size_t offset) const {
  return {load<std::uint64_t>(bytes_, offset), load<std::uint64_t>(bytes_, offset + 8)};
}

Result<PerfData> PerfDataReader::read() {
  if (bytes_.size() < kHeaderPipeBytes || !is_perf_data(bytes_))
    return bad("it does not begin as perf.data files of little-endian machines do");
  if (load<std::uint64_t>(bytes_, kHeaderSize) == kHeaderPipeBytes) {
    auto rest = walk(bytes_.subspan(kHeaderPipeBytes), false);
    if (!rest) return fail(std::move(rest.error()));
    if (!rest->empty()) problem("it ends inside a record");
  } else if (auto ok = read_file(); !ok) {
    return fail(std::move(ok.error()));
  }
  if (!left_.empty()) problem("what it holds packed ends inside a record");
  if (data_.attrs.empty()) return bad("it names no event");
  std::stable_sort(data_.records.begin(), data_.records.end(),
                   [](const RecordRef& a, const RecordRef& b) { return a.time_ns < b.time_ns; });
  return std::move(data_);
}

Result<void> PerfDataReader::read_file() {
  if (bytes_.size() < kHeaderFileBytes) return bad("it ends inside its header");
  if (load<std::uint64_t>(bytes_, kHeaderFeatures) >> kFeatureDirectory & 1)
    return bad("it is one of many, as `perf record --threads` writes them",
               "record without --threads");
  if (auto ok = read_attrs(place_at(kHeaderAttrs), load<std::uint64_t>(bytes_, kHeaderAttrSize));
      !ok)
    return ok;
  Place data = place_at(kHeaderData);
  if (data.offset > bytes_.size()) return bad("its data lie behind its end");
  const std::uint64_t held = bytes_.size() - data.offset;
  if (data.size == 0 && held != 0)
    problem("perf ended before it could write how much there is", "all that is there is read");
  else if (data.size > held)
    problem(fmt::format("it is cut short: {} of {} bytes of data are there", held, data.size));
  const bool is_whole = data.size != 0 && data.size <= held;
  if (!is_whole) data.size = held;
  // Before the data: their records are read by what is said there.
  if (is_whole) read_features(data.offset + data.size);
  auto rest = walk(at(data), false);
  if (!rest) return fail(std::move(rest.error()));
  if (!rest->empty() && is_whole) problem("its data end inside a record");
  return {};
}

Result<void> PerfDataReader::read_attrs(Place attrs, std::uint64_t entry_bytes) {
  constexpr std::uint64_t kIds_bytes = 16;
  ByteSpan all = at(attrs);
  if (entry_bytes < kAttrLeastSize_bytes + kIds_bytes || all.size() < entry_bytes)
    return bad("it does not say how its events were opened");
  for (; all.size() >= entry_bytes; all = all.subspan(entry_bytes)) {
    ByteSpan entry = all.first(entry_bytes);
    const std::size_t ids = entry_bytes - kIds_bytes;
    Place place{load<std::uint64_t>(entry, ids), load<std::uint64_t>(entry, ids + 8)};
    if (auto ok = add_attr(entry.first(ids), at(place)); !ok) return ok;
  }
  return {};
}

Result<void> PerfDataReader::add_attr(ByteSpan attr, ByteSpan ids) {
  if (data_.attrs.size() >= limits_.attrs) return bad("it names too many events");
  EventAttr event;
  event.type = load<std::uint32_t>(attr, kAttrType);
  event.config = load<std::uint64_t>(attr, kAttrConfig);
  event.sample_period = load<std::uint64_t>(attr, kAttrSamplePeriod);
  event.flags = load<std::uint64_t>(attr, kAttrFlags);
  event.format.sample_type = load<std::uint64_t>(attr, kAttrSampleType);
  event.format.sample_id_all = (event.flags & kAttrSampleIdAll) != 0;
  if (attr.size() >= kAttrBranchSampleType + 8)
    event.format.branch_sample_type = load<std::uint64_t>(attr, kAttrBranchSampleType);
  for (; ids.size() >= 8; ids = ids.subspan(8)) {
    if (++ids_ > limits_.ids) return bad("its events have too many identifiers");
    attr_by_id_.emplace(load<std::uint64_t>(ids), static_cast<std::uint32_t>(data_.attrs.size()));
  }
  data_.attrs.push_back(event);
  settle_id_place();
  return {};
}

// Which event a record is of can be told where all have that at the same place.
void PerfDataReader::settle_id_place() {
  const std::uint64_t first = data_.attrs.front().format.sample_type;
  const std::uint64_t type = data_.attrs.back().format.sample_type;
  const std::uint64_t field = id_field(first);
  has_ids_ = has_ids_ && id_field(type) == field &&
             place_in_sample(type, field) == place_in_sample(first, field) &&
             place_in_trailer(type, field) == place_in_trailer(first, field);
}

void PerfDataReader::read_features(std::uint64_t end_of_data) {
  std::uint64_t entry = end_of_data;
  for (unsigned feature = 0; feature < kFeatureCount; ++feature) {
    const std::uint64_t word = load<std::uint64_t>(bytes_, kHeaderFeatures + feature / 64 * 8);
    if ((word >> feature % 64 & 1) == 0) continue;
    if (entry > bytes_.size() || bytes_.size() - entry < 16) return;
    take_feature(feature, at(place_at(entry)));
    entry += 16;
  }
}

void PerfDataReader::take_feature(std::uint64_t feature, ByteSpan content) {
  if (feature == kFeatureBuildId) return take_build_ids(content);
  if (feature != kFeatureCpuId || content.size() < 4) return;
  std::string_view text = as_text(content.subspan(4));
  data_.cpu_id = text.substr(0, std::min<std::size_t>(text.find('\0'), 256));
}

void PerfDataReader::take_build_ids(ByteSpan records) {
  constexpr std::size_t kId = 12, kIdSize = 20, kName = 36;
  while (records.size() >= kName && data_.build_ids.size() < limits_.build_ids) {
    auto header = load<RecordHeader>(records);
    if (header.size_bytes < kName || header.size_bytes > records.size()) return;
    std::size_t size = kIdSize;
    if ((header.misc & kMiscBuildIdSize) != 0)
      size = std::min<std::size_t>(records[kId + kIdSize], kIdSize);
    std::string_view name = as_text(records.subspan(kName, header.size_bytes - kName));
    data_.build_ids.emplace(name.substr(0, name.find('\0')), to_hex(records.subspan(kId, size)));
    records = records.subspan(header.size_bytes);
  }
}

Result<ByteSpan> PerfDataReader::walk(ByteSpan stretch, bool is_unpacked) {
  while (stretch.size() >= sizeof(RecordHeader)) {
    auto header = load<RecordHeader>(stretch);
    if (header.size_bytes < sizeof header)
      return bad(
          fmt::format("it has a record of type {} and {} bytes", header.type, header.size_bytes));
    if (header.size_bytes > stretch.size()) break;
    if (is_unpacked && header.type >= kRecordUserFirst)
      return bad(fmt::format("it holds a record of type {} packed", header.type));
    auto size = take(stretch.first(header.size_bytes), stretch);
    if (!size) return fail(std::move(size.error()));
    if (*size == 0) break;
    stretch = stretch.subspan(*size);
  }
  return stretch;
}

Result<std::uint64_t> PerfDataReader::take(ByteSpan record, ByteSpan from_record) {
  auto header = load<RecordHeader>(record);
  std::uint64_t follows = 0;
  if (header.type == kRecordAuxtrace && record.size() >= 16)
    follows = load<std::uint64_t>(record, 8);
  if (header.type == kRecordHeaderTracingData && record.size() >= 12)
    follows = (std::uint64_t{load<std::uint32_t>(record, 8)} + 7) & ~7ull;
  if (follows > from_record.size() - record.size()) return std::uint64_t{0};
  Result<void> taken;
  if (header.type == kRecordAuxtrace)
    taken = take_aux(record, from_record.subspan(record.size(), follows));
  else
    taken = header.type < kRecordUserFirst ? take_of_kernel(record) : take_own(record);
  if (!taken) return fail(std::move(taken.error()));
  return record.size() + follows;
}

Result<void> PerfDataReader::take_own(ByteSpan record) {
  switch (load<RecordHeader>(record).type) {
    case kRecordHeaderAttr: {
      ByteSpan attr = record.subspan(sizeof(RecordHeader));
      if (attr.size() < kAttrLeastSize_bytes) return bad("it has an event that is cut short");
      const std::size_t size = load<std::uint32_t>(attr, kAttrSize);
      if (size < kAttrLeastSize_bytes || size > attr.size())
        return bad("it has an event that does not fit into its record");
      return add_attr(attr.first(size), attr.subspan(size));
    }
    case kRecordHeaderBuildId:
      take_build_ids(record);
      return {};
    case kRecordAuxtraceInfo:
      take_auxtrace_info(record);
      return {};
    case kRecordHeaderFeature:
      if (record.size() >= 16) take_feature(load<std::uint64_t>(record, 8), record.subspan(16));
      return {};
    case kRecordCompressed:
      return unpack(record.subspan(sizeof(RecordHeader)));
    case kRecordCompressed2: {
      if (record.size() < 16) return bad("it has a packed record that is cut short");
      const std::uint64_t size = load<std::uint64_t>(record, 8);
      return unpack(record.subspan(16, std::min<std::uint64_t>(size, record.size() - 16)));
    }
    default:
      return {};
  }
}

void PerfDataReader::take_auxtrace_info(ByteSpan record) {
  constexpr std::size_t kWords = 16;
  if (record.size() < kWords) return;
  auto type = load<std::uint32_t>(record, sizeof(RecordHeader));
  if (type != kAuxtracePt && type != kAuxtraceBts) return;
  data_.auxtrace = static_cast<AuxtraceType>(type);
  data_.auxtrace_info.clear();
  for (std::size_t at = kWords; at + 8 <= record.size() && data_.auxtrace_info.size() < kInfoWords;
       at += 8)
    data_.auxtrace_info.push_back(load<std::uint64_t>(record, at));
}

Result<void> PerfDataReader::take_aux(ByteSpan record, ByteSpan content) {
  constexpr std::size_t kOffset = 16, kIndex = 32, kTid = 36, kCpu = 40, kRecord_bytes = 44;
  if (record.size() < kRecord_bytes) return bad("it has a piece of trace that is not described");
  if (data_.aux.size() >= limits_.aux_pieces) return bad("it has too many pieces of trace");
  AuxPiece piece;
  piece.offset_bytes = load<std::uint64_t>(record, kOffset);
  piece.queue = load<std::uint32_t>(record, kIndex);
  piece.tid = load<std::int32_t>(record, kTid);
  piece.cpu = load<std::int32_t>(record, kCpu);
  piece.bytes = content;
  data_.aux.push_back(piece);
  return {};
}

Result<void> PerfDataReader::unpack(ByteSpan packed) {
  if (!unpacking_) unpacking_.reset(ZSTD_createDCtx());
  constexpr std::size_t kStep_bytes = 1 << 16;
  auto plain = std::make_shared<Bytes>(std::move(left_));
  left_.clear();
  unpacked_bytes_ += plain->size();  // it is held once more
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  for (bool more = true; more;) {
    const std::size_t begin = plain->size();
    plain->resize(begin + kStep_bytes);
    ZSTD_outBuffer out{plain->data() + begin, kStep_bytes, 0};
    const std::size_t status = ZSTD_decompressStream(unpacking_.get(), &out, &in);
    plain->resize(begin + out.pos);
    if (ZSTD_isError(status) != 0)
      return bad(std::string("what it holds packed is damaged: ") + ZSTD_getErrorName(status));
    unpacked_bytes_ += out.pos;
    if (unpacked_bytes_ > limits_.unpacked_bytes)
      return bad(fmt::format("it holds more than {} MiB packed", limits_.unpacked_bytes >> 20),
                 "record without -z");
    more = in.pos < in.size || out.pos == kStep_bytes;
  }
  plain->shrink_to_fit();
  auto rest = walk(*plain, true);
  if (!rest) return fail(std::move(rest.error()));
  left_.assign(rest->begin(), rest->end());
  data_.owners.push_back(std::move(plain));
  return {};
}

Result<void> PerfDataReader::take_of_kernel(ByteSpan record) {
  if (data_.attrs.empty()) return bad("it has records before it says how they are to be read");
  auto header = load<RecordHeader>(record);
  const std::uint32_t attr = attr_of(record, header);
  if (!is_wanted(header, data_.attrs[attr])) return {};
  if (data_.records.size() >= limits_.records)
    return bad(fmt::format("it has more than {} records", limits_.records),
               "record for a shorter time");
  data_.records.push_back({time_of(record, header, data_.attrs[attr].format), attr, record});
  return {};
}

std::uint32_t PerfDataReader::attr_of(ByteSpan record, RecordHeader header) const {
  if (!has_ids_ || data_.attrs.size() == 1) return 0;
  const RecordFormat& format = data_.attrs.front().format;
  auto id = word_of(record, header, format.sample_type, format.sample_id_all,
                    id_field(format.sample_type));
  auto found = id ? attr_by_id_.find(*id) : attr_by_id_.end();
  return found == attr_by_id_.end() ? 0 : found->second;
}

std::uint64_t PerfDataReader::time_of(ByteSpan record, RecordHeader header,
                                      const RecordFormat& format) const {
  auto time = word_of(record, header, format.sample_type, format.sample_id_all, kSampleTime);
  return time.value_or(0);
}

}  // namespace tailtrace::perf
