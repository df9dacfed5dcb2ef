// What runs at the beginning of each block. qemu's generated code calls tailtrace_block_entry with
// the vCPU's number and the RingBlock; the host register rbp is qemu's copy of the guest's
// registers then.
//
// Threading: on the vCPU's own thread; takes no lock.
#pragma once

#include <cstdint>

#include "decoder/record/ring_format.h"

extern "C" void tailtrace_block_entry(unsigned cpu, void* block);
// A block that could not be described; `pc` is its address.
extern "C" void tailtrace_lost_block_entry(unsigned cpu, void* pc);

// Blocks marked with kSlowBlock, and all while a thread stands in qemu's stub; `registers` is what
// rbp was.
extern "C" void tailtrace_on_slow_block(unsigned cpu, const tailtrace::RingBlock* block,
                                        std::uint64_t* registers);

namespace tailtrace {

// This thread stops. Should it stand before the first instruction of a signal handler, the signal
// is recorded now: whoever looks at the history finds it there, and the stack as the handler will.
void meet_handler_at_stop();

// From the open block into `block`, which begins at `pc`. Leaving the open block other than by
// falling through writes a record. The upper half of run_insns stays 0.
inline __attribute__((always_inline)) void step(RingHeader* ring, const RingBlock* block,
                                                std::uint64_t pc) {
  constexpr auto kRelaxed = std::memory_order_relaxed, kRelease = std::memory_order_release;
  const auto* open = reinterpret_cast<const RingBlock*>(ring->open_block.load(kRelaxed));
  std::uint64_t tail = ring->run_insns.load(kRelaxed) + open->tail;
  if (pc == open->next) {
    ring->run_insns.store(static_cast<std::uint32_t>(tail), kRelease);
  } else {
    std::uint64_t head = ring->head_bytes.load(kRelaxed);
    std::uint8_t* records = reinterpret_cast<std::uint8_t*>(ring) + kRingHeaderSize_bytes;
    auto* slot = reinterpret_cast<std::uint64_t*>(records + (head & ring->mask_bytes));
    slot[0] = open->last;
    slot[1] = pc;
    slot[2] = ring->time;
    slot[3] = tail;
    ring->run_insns.store(0, kRelease);
    ring->head_bytes.store(head + sizeof(BranchRecord), kRelease);
  }
  ring->open_block.store(reinterpret_cast<std::uint64_t>(block), kRelease);
}
static_assert(sizeof(BranchRecord) == 32);

}  // namespace tailtrace
