#include "decoder/perf_data/file.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/perf_data/reader.h"

namespace tailtrace::perf {

std::optional<TimeConversion> PerfData::clock() const {
  const std::uint64_t mult = info(kInfoTimeMult), shift = info(kInfoTimeShift);
  if (info(kInfoTimeIsKnown) == 0 || mult == 0 || mult > 0xffffffff || shift >= 64)
    return std::nullopt;
  for (const EventAttr& attr : attrs)
    if ((attr.flags & kAttrUseClockId) != 0) return std::nullopt;
  return TimeConversion{info(kInfoTimeZero), static_cast<std::uint32_t>(mult),
                        static_cast<std::uint16_t>(shift)};
}

Result<ParsedRecord> PerfData::parse(const RecordRef& record) const {
  RecordFormat format = attrs[record.attr].format;
  // What stands behind the branch stack of a sample is not looked at.
  constexpr std::uint64_t kUpToBranchStack = 2 * kSampleBranchStack - 1;
  if (load<RecordHeader>(record.bytes).type == kRecordSample)
    format.sample_type &= kUpToBranchStack | kSampleIdentifier;
  return parse_record(record.bytes, format);
}

bool is_perf_data(ByteSpan begin) { return as_text(begin).starts_with(kPerfDataMagic); }

Result<PerfData> parse_perf_data(ByteSpan bytes, const std::string& name,
                                 std::shared_ptr<const void> owner, const PerfDataLimits& limits) {
  return PerfDataReader(bytes, name, std::move(owner), limits).read();
}

Result<PerfData> read_perf_data(const std::string& path) {
  auto mapped = MappedFile::open(path);
  if (!mapped) return fail(std::move(mapped.error()));
  auto file = std::make_shared<const MappedFile>(std::move(*mapped));
  return parse_perf_data(file->bytes(), path, file);
}

}  // namespace tailtrace::perf
