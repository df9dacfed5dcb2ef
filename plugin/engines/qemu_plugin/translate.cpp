#include "plugin/engines/qemu_plugin/translate.h"

#include "decoder/base/types.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/interrupt.h"
#include "plugin/engines/qemu_plugin/on_block.h"
#include "plugin/engines/qemu_plugin/watch.h"

namespace tailtrace {
namespace {

// qemu's own limit on the instructions of a block is far lower.
constexpr std::size_t kMaxBlock_insns = 4096;

// A page where qemu does what the kernel would do: its functions have no code of their own
// (Linux, Documentation/arch/x86/x86_64/mm: the vsyscall page).
constexpr std::uint64_t kVsyscallPage = 0xffffffffff600000;
constexpr std::uint8_t kRet = 0xc3;

struct Collected {
  std::uint64_t begin;
  const std::uint8_t* memory;  // where the guest's bytes at `begin` lie; null: nowhere
  std::uint8_t bytes[kMaxBlock_insns * kMaxInstructionSize_bytes];
  std::uint8_t sizes[kMaxBlock_insns];
  std::size_t size_bytes;
  std::size_t insns;

  void add(const void* data, std::size_t size) {
    std::memcpy(bytes + size_bytes, data, size);
    sizes[insns++] = static_cast<std::uint8_t>(size);
    size_bytes += size;
  }
};

// qemu gives up an instruction that crosses into the next page unless it comes first, but still
// shows the part that it had read.
bool is_half_read(const Collected& c, const void* data, std::size_t size) {
  std::uint64_t at = c.begin + c.size_bytes;
  if (c.insns == 0 || at % kPage_bytes + kMaxInstructionSize_bytes <= kPage_bytes) return false;
  return !decode_instruction({static_cast<const std::uint8_t*>(data), size}, {at});
}

// False: more than can be described.
bool collect(const qemu_plugin_tb* tb, Collected& c) {
  c.begin = qemu_plugin_tb_vaddr(tb);
  c.memory = nullptr;
  c.size_bytes = c.insns = 0;
  if (c.begin - c.begin % kPage_bytes == kVsyscallPage) {
    c.add(&kRet, 1);
    return true;
  }
  std::size_t count = qemu_plugin_tb_n_insns(tb);
  if (count > kMaxBlock_insns) return false;
  for (std::size_t i = 0; i < count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const void* data = qemu_plugin_insn_data(insn);
    std::size_t size = qemu_plugin_insn_size(insn);
    if (size == 0 || size > kMaxInstructionSize_bytes) return false;
    if (i + 1 == count && is_half_read(c, data, size)) break;
    if (i == 0) c.memory = static_cast<const std::uint8_t*>(qemu_plugin_insn_haddr(insn));
    c.add(data, size);
  }
  return c.insns != 0;
}

RingBlock* describe(const Collected& c) {
  if (c.memory != nullptr && !g_recorder.knows_guest_base) {
    g_recorder.guest_base = reinterpret_cast<std::uint64_t>(c.memory) - c.begin;
    g_recorder.knows_guest_base = true;
    g_recorder.blocks.care_for(c.begin, kCareThread);  // the main thread begins here
    let_interrupted_reads_go_on();
  }
  auto epoch = g_recorder.code.see(c.begin, c.bytes, c.size_bytes, c.memory);
  if (!epoch) return nullptr;
  return g_recorder.blocks.find_or_add({c.begin, c.bytes, c.sizes,
                                        static_cast<std::uint16_t>(c.size_bytes),
                                        static_cast<std::uint16_t>(c.insns), *epoch});
}

}  // namespace

void translate(qemu_plugin_tb* tb) {
  static Collected collected;  // too large for a stack; guarded by the lock
  std::lock_guard lock(g_recorder.lock);
  RingBlock* block = collect(tb, collected) ? describe(collected) : nullptr;
  watch_accesses(tb);
  if (block != nullptr) {
    qemu_plugin_register_vcpu_tb_exec_cb(tb, tailtrace_block_entry, QEMU_PLUGIN_CB_NO_REGS, block);
    return;
  }
  g_recorder.blocks.header().lost_blocks.fetch_add(1);
  qemu_plugin_register_vcpu_tb_exec_cb(tb, tailtrace_lost_block_entry, QEMU_PLUGIN_CB_NO_REGS,
                                       reinterpret_cast<void*>(qemu_plugin_tb_vaddr(tb)));
}

void forget_translations() {
  std::lock_guard lock(g_recorder.lock);
  for (std::uint32_t cpu = 0; cpu < g_recorder.vcpu_count; ++cpu)
    if (g_recorder.vcpu(cpu).is_running) Flow(cpu).own_open();
  Flow(g_recorder.rings.limit()).own_open();
  g_recorder.blocks.clear();
}

}  // namespace tailtrace
