#include "plugin/engines/qemu_plugin/call_catch.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/on_block.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"
#include "plugin/engines/qemu_plugin/signal_info.h"
#include "plugin/engines/qemu_plugin/stub_gate.h"
#include "plugin/engines/qemu_plugin/threads.h"

namespace tailtrace {
namespace {

// The one instruction that the open block gave up on is executed again, alone. False: the open
// block was executed whole, and its end led here.
bool is_cut_at(const RingBlock& open, const BlockInfo& info, std::uint64_t pc) {
  if (pc == open.next || info.target == pc) return false;
  switch (info.last) {
    case InstructionClass::kReturn:
    case InstructionClass::kIndirectJump:
      if (pc == info.begin) return false;
      break;
    case InstructionClass::kSystemCall:
    case InstructionClass::kSystemReturn:
      return false;
    default:
      break;
  }
  return info.index_of(pc) >= 0;
}

// A REP string instruction is a block of its own per iteration; the first iteration may have been
// the end of a longer block. All of them are one instruction.
bool goes_on_repeating(const RingBlock& open, const BlockInfo& info, const RingBlock& block) {
  return open.next == block.next && info.last == InstructionClass::kRepString;
}

void enter_handler(Flow& flow, const SignalFrame& frame, std::uint64_t pc) {
  flow.interrupt_at(frame.pc, frame.is_fault);
  flow.event(frame.pc, pc, RecordKind::kSignal, frame.signal);
}

// A handler before whose first instruction this thread stopped, so that the signal is recorded.
struct MetHandler {
  std::uint64_t pc, stack;
  bool operator==(const MetHandler&) const = default;
};
constinit thread_local MetHandler t_met_handler{0, 0};

bool meet_handler(Flow& flow, Vcpu& vcpu, std::uint64_t pc) {
  auto frame = read_signal_frame(vcpu.registers);
  if (!frame) return false;
  flow.take_time();
  enter_handler(flow, *frame, pc);
  mend_signal_info(vcpu, *frame);
  align_signal_frame(vcpu.registers);
  return true;
}

void change_code(Flow& flow, std::uint64_t pc, std::uint32_t epoch) {
  flow.complete_to(pc);
  std::uint32_t seen = flow.ring().epoch.load(std::memory_order_relaxed);
  while (seen != epoch) {
    std::uint32_t changes = std::min<std::uint32_t>(epoch - seen, 0xffff);
    seen += changes;
    flow.ring().epoch.store(seen, std::memory_order_release);
    flow.event(pc, pc, RecordKind::kCodeChange, static_cast<std::uint16_t>(changes));
  }
}

void enter_slow_block(unsigned cpu, const RingBlock* block, std::uint64_t* registers) {
  const BlockInfo& info = g_recorder.blocks.info(block);
  Flow flow(cpu);
  if ((info.care & kCareRepeat) != 0 && goes_on_repeating(flow.open(), flow.open_info(), *block))
    return;
  std::uint64_t pc = info.begin;
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  if (!has_begun()) begin_thread(cpu);
  vcpu.registers = registers;
  if ((info.care & kCareHandler) != 0) {
    if (t_met_handler != MetHandler{pc, registers[kRsp]}) meet_handler(flow, vcpu, pc);
    t_met_handler = {pc, registers[kRsp]};
  }
  if ((info.care & kCareSingle) != 0 && is_cut_at(flow.open(), flow.open_info(), pc))
    flow.cut_to(pc, flow.open_info().index_of(pc));
  if ((info.care & kCareChanged) != 0 && info.epoch > flow.ring().epoch.load()) {
    flow.take_time();
    change_code(flow, pc, info.epoch);
  }
  step(&flow.ring(), block, pc);
}

}  // namespace

void meet_handler_at_stop() {
  if (t_cpu < 0) return;
  const auto cpu = static_cast<std::uint32_t>(t_cpu);
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  const std::uint64_t* registers = vcpu.registers;
  if (registers == nullptr) return;
  const std::uint64_t pc = registers[kRip];
  {
    std::lock_guard lock(g_recorder.lock);
    if (!g_recorder.blocks.cares_for(pc, kCareHandler)) return;
  }
  Flow flow(cpu);
  if (t_met_handler == MetHandler{pc, registers[kRsp]} || flow.open_info().begin == pc) return;
  if (meet_handler(flow, vcpu, pc)) t_met_handler = {pc, registers[kRsp]};
}

}  // namespace tailtrace

using namespace tailtrace;

extern "C" void tailtrace_on_slow_block(unsigned cpu, const RingBlock* block,
                                        std::uint64_t* registers) {
  enter_slow_block(cpu, block, registers);
  pass_stub_gate(cpu, g_recorder.blocks.info(block).begin);
  tell_of_lacking_room(cpu);
  stop_at_call(cpu, g_recorder.blocks.info(block), registers);
  if (t_met_handler.pc == g_recorder.blocks.info(block).begin) t_met_handler = {0, 0};
}

extern "C" void tailtrace_lost_block_entry(unsigned cpu, void* pc) {
  if (!has_begun()) begin_thread(cpu);
  Flow flow(cpu);
  bool lost = static_cast<RecordKind>(flow.open().tail >> 32 & 0xff) == RecordKind::kGap;
  if (!lost) flow.lose(reinterpret_cast<std::uint64_t>(pc));
  pass_stub_gate(cpu, reinterpret_cast<std::uint64_t>(pc));
  tell_of_lacking_room(cpu);
}
