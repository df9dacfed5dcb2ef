#include "decoder/pt/tail.h"

#include <algorithm>
#include <optional>

#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace::pt {
namespace {

// A hole that the kernel tells of is put into the trace as a packet that decoders hand through:
// MNT, with a payload that no processor makes.
constexpr std::uint64_t kHolePayload = 0x7461696c68000000;
constexpr std::uint64_t kHoleMask = 0xffffffffff000000;

std::optional<GapCause> hole_in(const Event& event) {
  if (event.kind != EventKind::kMnt || (event.payload & kHoleMask) != kHolePayload)
    return std::nullopt;
  return cause_of_hole(event.payload & ~kHoleMask);
}

// A hole that was overwritten since need not lie between packets any more.
bool is_between_packets(ByteSpan trace, std::size_t offset) {
  std::size_t psb = 0, found = trace.size();
  for (auto next = find_psb(trace, 0); next && *next < offset; next = find_psb(trace, psb + 1))
    found = psb = *next;
  if (found == trace.size()) return false;
  PacketReader reader(trace);
  reader.seek(found);
  Packet packet;
  while (reader.offset() < offset)
    if (reader.next(packet) != ReadStatus::kOk) return false;
  return reader.offset() == offset;
}

}  // namespace

GapCause cause_of_hole(std::uint64_t aux_flags) {
  if ((aux_flags & perf::kAuxTruncated) != 0) return GapCause::kTruncated;
  if ((aux_flags & perf::kAuxPartial) != 0) return GapCause::kPartial;
  return (aux_flags & perf::kAuxCollision) != 0 ? GapCause::kCollision : GapCause::kOverwritten;
}

Bytes with_holes(ByteSpan trace, std::span<const perf::AuxHole> holes) {
  Bytes marked;
  std::size_t taken = 0;
  auto take_until = [&](std::size_t end) {
    marked.insert(marked.end(), trace.begin() + static_cast<std::ptrdiff_t>(taken),
                  trace.begin() + static_cast<std::ptrdiff_t>(end));
    taken = end;
  };
  for (const perf::AuxHole& hole : holes) {
    if (hole.before_head_bytes > trace.size()) continue;
    std::size_t at = trace.size() - hole.before_head_bytes;
    if (!is_between_packets(trace, at)) continue;
    take_until(at);
    const std::uint64_t payload = kHolePayload | hole.flags;
    marked.insert(marked.end(), {0x02, 0xc3, 0x88});
    for (unsigned bit = 0; bit < 64; bit += 8)
      marked.push_back(static_cast<std::uint8_t>(payload >> bit));
  }
  take_until(trace.size());
  return marked;
}

Event hole_event(std::uint64_t aux_flags) {
  Event event;
  event.kind = EventKind::kMnt;
  event.payload = kHolePayload | aux_flags;
  return event;
}

std::vector<CodeChange> code_changes(std::span<const EpochBegin> begins) {
  std::vector<CodeChange> changes;
  for (const EpochBegin& begin : begins) changes.push_back({0, begin.time, begin.epoch});
  return changes;
}

void Tail::instructions(std::span<const Instruction> run, const RunState& state) {
  sink_.instructions(run, state);
  drain_at_times();
}

void Tail::branches(const BranchRun& run) {
  sink_.branches(run);
  drain_at_times();
}

void Tail::drain_at_times() {
  if (++undrained_ == kDrainEvery) drain();
}

void Tail::event(const Event& event) {
  if (auto cause = hole_in(event))
    sink_.lost(*cause);
  else
    sink_.event(event);
}

// A record's time is that of the packet that told it, which had been decoded with the code of that
// time: the change stands before it, where the flow was. Where that is not known it stands behind.
void Tail::add(const std::vector<BranchRecord>& more) {
  for (const BranchRecord& record : more) {
    const bool known = !records_.empty() && !records_.back().to.is_null();
    if (known) begin_epochs(record.time);
    if (records_.empty() && forgotten_ == 0)
      for (; begun_ < changes_.size() && changes_[begun_].time <= record.time; ++begun_)
        ++first_epoch_.value;
    records_.push_back(record);
    if (!known && !record.to.is_null()) begin_epochs(record.time);
  }
}

std::vector<BranchRecord> Tail::behind(const std::vector<BranchRecord>& more) const {
  Tail rest(0, {changes_.begin() + static_cast<std::ptrdiff_t>(begun_), changes_.end()});
  if (!records_.empty()) rest.records_.push_back(records_.back());
  rest.add(more);
  rest.records_.erase(rest.records_.begin(), rest.records_.begin() + !records_.empty());
  return rest.records_;
}

void Tail::begin_epochs(std::uint64_t time) {
  const Address at = records_.back().to;
  const std::uint8_t flags = kFlagAsync | kernel_flag(at);
  for (; begun_ < changes_.size() && changes_[begun_].time <= time; ++begun_)
    records_.push_back({at, at, time, 0, RecordKind::kCodeChange, flags, 1});
}

void Tail::drain() {
  undrained_ = 0;
  add(sink_.drain());
  // Half at a time, so that a record is moved once at most.
  if (records_.size() < 2 * newest_) return;
  std::size_t dropped = records_.size() - newest_;
  for (std::size_t i = 0; i < dropped; ++i)
    if (records_[i].kind == RecordKind::kCodeChange) ++first_epoch_.value;
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(dropped));
  forgotten_ += dropped;
}

}  // namespace tailtrace::pt
