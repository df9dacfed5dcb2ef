#include "decoder/perf/aux_holes.h"

#include <algorithm>

namespace tailtrace::perf {

Result<std::vector<AuxHole>> find_aux_holes(const RecordList& records, std::size_t first,
                                            const RecordFormat& format,
                                            std::uint64_t capacity_bytes, std::uint64_t head) {
  constexpr std::uint64_t kHoles = kAuxTruncated | kAuxPartial | kAuxCollision;
  std::vector<AuxHole> holes;
  std::uint64_t later = capacity_bytes == 0 ? 0 : head % capacity_bytes;
  std::uint64_t distance = 0;
  for (std::size_t i = records.size(); i-- > first && capacity_bytes != 0;) {
    if (records.header(i).type != kRecordAux) continue;
    auto record = parse_record(records[i], format);
    if (!record) return fail(std::move(record.error()));
    const AuxEvent& aux = std::get<AuxEvent>(record->body);
    const std::uint64_t offset = aux.offset_bytes % capacity_bytes;
    distance += (later + capacity_bytes - offset) % capacity_bytes;
    if (distance >= capacity_bytes) break;
    later = offset;
    if ((aux.flags & kHoles) != 0) holes.push_back({distance, aux.flags & kHoles});
  }
  std::reverse(holes.begin(), holes.end());
  return holes;
}

}  // namespace tailtrace::perf
