#include "decoder/bts/cpu_area.h"

#include <algorithm>

namespace tailtrace::bts {
namespace {

using perf::kBtsRecordSize_bytes;

tl::unexpected<Error> not_there() {
  return fail(ErrorCode::kBadInput, "cannot read an area of Intel BTS",
              "the kernel tells of records that are not in it");
}

// The newest `bytes` of the stretch that ends there. The driver puts no record across the area's
// end, and all of them at multiples of their size.
Result<std::vector<Branch>> read_stretch(ByteSpan area, std::uint64_t end, std::uint64_t bytes) {
  std::vector<Branch> branches;
  const std::uint64_t begin = end - bytes / kBtsRecordSize_bytes * kBtsRecordSize_bytes;
  branches.reserve((end - begin) / kBtsRecordSize_bytes);
  for (std::uint64_t at = begin; at < end; at += kBtsRecordSize_bytes) {
    const std::uint64_t offset = at % area.size();
    if (offset + kBtsRecordSize_bytes > area.size()) return not_there();
    branches.push_back(
        {{load<std::uint64_t>(area, offset)}, {load<std::uint64_t>(area, offset + 8)}});
  }
  return branches;
}

}  // namespace

Result<CpuBranches> read_cpu_area(const CpuArea& area, const perf::RecordList& told,
                                  const perf::RecordFormat& format) {
  constexpr std::uint64_t kHoles = perf::kAuxTruncated | perf::kAuxPartial | perf::kAuxCollision;
  CpuBranches cpu;
  bool all = area.told_from_begin;
  for (std::size_t i = 0; i < told.size(); ++i) {
    auto record = perf::parse_record(told[i], format);
    if (!record) return fail(std::move(record.error()));
    const auto* aux = std::get_if<perf::AuxEvent>(&record->body);
    if (aux == nullptr || !record->id.thread || !record->id.time_ns) continue;
    const std::uint64_t end = aux->offset_bytes + aux->size_bytes;
    if (end > area.head || aux->size_bytes > area.bytes.size()) return not_there();
    const std::uint64_t behind = area.head - end;
    const std::uint64_t left =
        std::min(aux->size_bytes, area.bytes.size() - std::min(area.bytes.size(), behind));
    if (left < aux->size_bytes) all = false;
    if (left == 0 && aux->size_bytes != 0) continue;
    if (!all && cpu.begin_ns == 0) cpu.begin_ns = *record->id.time_ns;
    auto branches = read_stretch(area.bytes, end, left);
    if (!branches) return fail(std::move(branches.error()));
    cpu.batches.push_back({*record->id.thread, *record->id.time_ns, std::move(*branches), {}});
    if ((aux->flags & kHoles) == 0) continue;
    const bool cut = (aux->flags & perf::kAuxTruncated) != 0;
    cpu.batches.push_back({*record->id.thread,
                           *record->id.time_ns,
                           {},
                           cut ? GapCause::kTruncated : GapCause::kPartial});
  }
  return cpu;
}

void note_pauses(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                 std::span<const Pause> pauses) {
  for (const Pause& pause : pauses) {
    if (pause.begin_ns < known_from_ns) cpu.begin_ns = std::max(cpu.begin_ns, known_from_ns);
    auto slot =
        std::partition_point(slots.slots.begin(), slots.slots.end(),
                             [&](const perf::CpuSlot& s) { return s.end_ns <= pause.begin_ns; });
    for (; slot != slots.slots.end() && slot->begin_ns < pause.end_ns; ++slot)
      if (slot->thread.tid > 0)
        cpu.batches.push_back(
            {slot->thread, std::min(slot->end_ns, pause.end_ns), {}, GapCause::kTruncated});
  }
  std::stable_sort(cpu.batches.begin(), cpu.batches.end(),
                   [](const Batch& a, const Batch& b) { return a.time_ns < b.time_ns; });
}

}  // namespace tailtrace::bts
