#include "plugin/engines/qemu/open_run.h"

#include <optional>

#include "decoder/code/code_reader.h"

namespace tailtrace {
namespace {

// No straight run is longer; a corrupt file may claim more.
constexpr std::uint64_t kMaxRun_insns = 1 << 24;

RecordKind kind_of(const RingBlock& block) { return static_cast<RecordKind>(block.tail >> 32); }

BranchRecord end_at(Address from, std::uint64_t insns, std::uint64_t time, EdgeCause cause) {
  return {from,
          {},
          time,
          static_cast<std::uint32_t>(insns),
          RecordKind::kDisable,
          kFlagAsync | kFlagSynthetic,
          static_cast<std::uint16_t>(cause)};
}

// How many instructions lie between two addresses; nothing when no boundary is at `to`.
std::optional<std::uint64_t> count_insns(CodeReader& code, Address from, Address to) {
  std::uint64_t count = 0;
  while (from < to && count < kMaxRun_insns) {
    auto insn = code.at(from);
    if (!insn) return std::nullopt;
    from = insn->next();
    ++count;
  }
  if (from != to) return std::nullopt;
  return count;
}

// The address after `count` instructions.
std::optional<Address> skip_insns(CodeReader& code, Address from, std::uint64_t count) {
  if (count > kMaxRun_insns) return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto insn = code.at(from);
    if (!insn) return std::nullopt;
    from = insn->next();
  }
  return from;
}

// Whether the instruction at the block's end can have led to `pc`.
bool can_lead_to(const RingBlock& block, Address pc, CodeReader& code) {
  RecordKind kind = kind_of(block);
  bool is_direct =
      kind == RecordKind::kConditional || kind == RecordKind::kJump || kind == RecordKind::kCall;
  if (!is_direct) return kind != RecordKind::kDiscontinuity;
  auto last = code.at({block.last});
  return !last || last->target == pc;
}

}  // namespace

BranchRecord OpenRun::left_for(Address to) const {
  return {{block.last},
          to,
          time,
          static_cast<std::uint32_t>(insns + block_insns()),
          kind_of(block),
          static_cast<std::uint8_t>(block.tail >> 40),
          static_cast<std::uint16_t>(block.tail >> 48)};
}

Closing close_at_stop(const OpenRun& run, const Engine::Stop& stop, const CodeImage& code,
                      Epoch epoch) {
  CodeReader reader(code);
  reader.set_epoch(epoch);
  const RingBlock& block = run.block;
  if (run.waits) return {end_at({block.begin}, run.insns, run.time, EdgeCause::kDebugger)};
  if (stop.faulted && block.begin <= stop.pc.value && stop.pc.value <= block.last)
    if (auto done = count_insns(reader, {block.begin}, stop.pc))
      return {end_at(stop.pc, run.insns + *done, run.time, EdgeCause::kDebugger)};
  if (stop.pc.value == block.next)
    return {end_at(stop.pc, run.insns + run.block_insns(), run.time, EdgeCause::kDebugger)};
  BranchRecord owed = run.left_for(stop.pc);
  if (!can_lead_to(block, stop.pc, reader)) {
    // Somebody moved the thread. Had the block not been left, its end would be next.
    auto last = reader.at({block.last});
    owed.kind = RecordKind::kDiscontinuity;
    if (last && (owed.flags & kFlagAsync) == 0) owed.from = last->next();
    owed.flags |= kFlagAsync | kFlagSynthetic;
  }
  return {owed, end_at(stop.pc, 0, run.time, EdgeCause::kDebugger)};
}

Closing close_at_end(const OpenRun& run, EdgeCause cause) {
  BranchRecord end = run.left_for({});
  end.kind = RecordKind::kDisable;
  end.flags |= kFlagSynthetic;
  end.extra = static_cast<std::uint16_t>(cause);
  return {end};
}

Closing close_anywhere(const OpenRun& run, Address newest, const CodeImage& code, Epoch epoch,
                       EdgeCause cause) {
  CodeReader reader(code);
  reader.set_epoch(epoch);
  if (run.is_whole) {
    if (auto call = reader.at({run.block.last}))
      return {run.left_for(call->next()), end_at(call->next(), 0, run.time, cause)};
  }
  auto at = skip_insns(reader, newest, run.insns);
  if (!at) return {end_at(newest, 0, run.time, cause)};
  return {end_at(*at, run.insns, run.time, cause)};
}

}  // namespace tailtrace
