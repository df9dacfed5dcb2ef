#include "plugin/engines/qemu_plugin/flow.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t tail_of(RecordKind kind, std::uint8_t flags, std::uint16_t extra) {
  return static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint64_t>(flags) << 40 |
         static_cast<std::uint64_t>(extra) << 48;
}

std::uint32_t insns_of(const RingBlock& block) { return static_cast<std::uint32_t>(block.tail); }

}  // namespace

void Flow::push(const BranchRecord& record) {
  std::uint64_t head = ring_.head_bytes.load(std::memory_order_relaxed);
  auto* records = reinterpret_cast<std::uint8_t*>(&ring_) + kRingHeaderSize_bytes;
  *reinterpret_cast<BranchRecord*>(records + (head & ring_.mask_bytes)) = record;
  ring_.run_insns.store(0, std::memory_order_release);
  ring_.head_bytes.store(head + sizeof record, std::memory_order_release);
}

void Flow::set_open(const RingBlock& block, const BlockInfo& info) {
  bool own_is_open = &open() == &ring_.own_block;
  RingBlock& own = own_is_open ? ring_.spare_block : ring_.own_block;
  BlockInfo copy = info;  // may be the one it replaces
  own = block;
  g_recorder.vcpu(cpu_).own_info = copy;
  ring_.open_block.store(reinterpret_cast<std::uint64_t>(&own), std::memory_order_release);
}

void Flow::stand_at(std::uint64_t pc) {
  BlockInfo info;
  info.begin = pc;
  set_open({pc, pc, pc, tail_of(RecordKind::kDiscontinuity, kFlagAsync, 0)}, info);
}

void Flow::complete_to(std::uint64_t pc) {
  const RingBlock& block = open();
  std::uint64_t run = ring_.run_insns.load(std::memory_order_relaxed) + insns_of(block);
  if (pc == block.next) {
    ring_.run_insns.store(run, std::memory_order_release);
  } else {
    BranchRecord record;
    record.from = {block.last};
    record.to = {pc};
    record.time = ring_.time;
    record.insns = static_cast<std::uint32_t>(run);
    record.kind = static_cast<RecordKind>(block.tail >> 32 & 0xff);
    record.flags = static_cast<std::uint8_t>(block.tail >> 40);
    record.extra = static_cast<std::uint16_t>(block.tail >> 48);
    push(record);
  }
  stand_at(pc);
}

void Flow::cut_to(std::uint64_t pc, int insns) {
  std::uint64_t run = ring_.run_insns.load(std::memory_order_relaxed);
  ring_.run_insns.store(run + static_cast<std::uint64_t>(insns), std::memory_order_release);
  stand_at(pc);
}

// REP blocks end before the instruction does, which is interrupted there.
void Flow::interrupt_at(std::uint64_t pc, bool is_fault) {
  const BlockInfo& info = open_info();
  int done = info.index_of(pc);
  bool repeats = info.last == InstructionClass::kRepString && done == info.insns - 1;
  if (done >= 0 && (is_fault || repeats) && pc != open().next)
    cut_to(pc, done);
  else
    complete_to(pc);
}

void Flow::move(std::uint64_t pc, std::uint64_t to, bool is_fault) {
  interrupt_at(pc, is_fault);
  event(pc, to, RecordKind::kDiscontinuity, 0);
}

void Flow::event(std::uint64_t from, std::uint64_t to, RecordKind kind, std::uint16_t extra) {
  BranchRecord record;
  record.from = {from};
  record.to = {to};
  record.time = ring_.time;
  record.insns = static_cast<std::uint32_t>(ring_.run_insns.load(std::memory_order_relaxed));
  record.kind = kind;
  record.flags = kind == RecordKind::kEnable ? 0 : kFlagAsync;
  record.extra = extra;
  push(record);
  stand_at(to);
}

void Flow::rename_open(RecordKind kind) {
  RingBlock block = open();
  block.tail = insns_of(block) | tail_of(kind, 0, 0);
  set_open(block, open_info());
}

void Flow::come_to_call() {
  ring_.called_head_bytes.store(ring_.head_bytes.load(std::memory_order_relaxed));
  ring_.called_run_insns.store(ring_.run_insns.load(std::memory_order_relaxed));
  ring_.called_block.store(ring_.open_block.load(std::memory_order_relaxed));
}

void Flow::own_open() {
  if (g_recorder.blocks.holds(&open())) set_open(open(), open_info());
}

void Flow::lose(std::uint64_t pc) {
  complete_to(pc);
  std::uint16_t cause = static_cast<std::uint16_t>(GapCause::kLost);
  BlockInfo info;
  info.begin = pc;
  set_open({pc, kNoFallThrough, pc, tail_of(RecordKind::kGap, kFlagAsync, cause)}, info);
}

void Flow::enter(const RingBlock* block) {
  ring_.open_block.store(reinterpret_cast<std::uint64_t>(block), std::memory_order_release);
}

}  // namespace tailtrace
