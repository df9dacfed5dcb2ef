#include "plugin/engines/qemu_plugin/on_block.h"

#include <cstddef>

#include "plugin/engines/qemu_plugin/rings.h"
#include "plugin/engines/qemu_plugin/stub_gate.h"

namespace tailtrace {

// Takes what a thread executes before it has a ring; nobody reads it.
alignas(4096) UnreadRing g_unread_ring;

}  // namespace tailtrace

constinit thread_local tailtrace::RingHeader* tailtrace_ring = &tailtrace::g_unread_ring.header;

// step() by hand: 15 instructions for a block that was fallen into, 28 for one that was led to.
// Which of the two it is the processor foretells well, from the branches of qemu's code on the way
// here. Vector registers would be four times slower, for qemu's own code leaves their upper halves
// in use. The slot is fetched for writing eight records ahead.
//
// rsi is the RingBlock, edi the vCPU's number, and rbp, which slow blocks need, is not touched. The
// order of the last stores is part of the format: record, run, head, open block.
asm(R"(
  .text
  .p2align 6
  .globl tailtrace_block_entry
  .hidden tailtrace_block_entry
  .type tailtrace_block_entry, @function
tailtrace_block_entry:
  mov (%rsi), %r8                               # pc = block->begin
  mov tailtrace_all_slow(%rip), %r9
  mov tailtrace_ring@gottpoff(%rip), %rax
  mov %fs:(%rax), %rax                          # ring
  or %r8, %r9
  js 1f
  mov 144(%rax), %rcx                           # open
  mov 136(%rax), %edx
  add 24(%rcx), %rdx                            # tail = run_insns + open->tail
  cmp 8(%rcx), %r8                              # pc != open->next
  jne 2f
  mov %edx, 136(%rax)
  mov %rsi, 144(%rax)
  ret
  .p2align 4
2:
  mov 128(%rax), %r9                            # head
  mov 160(%rax), %r11
  mov 16(%rcx), %r10                            # open->last
  and %r9, %r11                                 # the slot lies 4096 behind ring + r11
  prefetchw 4096+256(%rax, %r11)
  mov %r10, 4096(%rax, %r11)
  mov %r8, 4096+8(%rax, %r11)
  mov 152(%rax), %r10
  mov %r10, 4096+16(%rax, %r11)
  mov %rdx, 4096+24(%rax, %r11)
  add $32, %r9
  movl $0, 136(%rax)
  mov %r9, 128(%rax)
  mov %rsi, 144(%rax)
  ret
1:
  mov %rbp, %rdx
  jmp tailtrace_on_slow_block
  .size tailtrace_block_entry, . - tailtrace_block_entry
)");

using namespace tailtrace;
static_assert(offsetof(RingBlock, begin) == 0 && offsetof(RingBlock, next) == 8 &&
              offsetof(RingBlock, last) == 16 && offsetof(RingBlock, tail) == 24);
static_assert(offsetof(RingHeader, head_bytes) == 128 && offsetof(RingHeader, run_insns) == 136 &&
              offsetof(RingHeader, open_block) == 144 && offsetof(RingHeader, time) == 152 &&
              offsetof(RingHeader, mask_bytes) == 160 && kRingHeaderSize_bytes == 4096);
