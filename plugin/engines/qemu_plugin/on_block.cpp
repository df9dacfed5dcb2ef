#include "plugin/engines/qemu_plugin/on_block.h"

#include <cstddef>

#include "plugin/engines/qemu_plugin/rings.h"

namespace tailtrace {

// Takes what a thread executes before it has a ring; nobody reads it.
alignas(4096) UnreadRing g_unread_ring;

}  // namespace tailtrace

constinit thread_local tailtrace::RingHeader* tailtrace_ring = &tailtrace::g_unread_ring.header;

// step() by hand: 30 instructions at every block. Vector registers would be four times slower, for
// qemu's own code leaves their upper halves in use. The slot is fetched for writing eight records
// ahead.
//
// Nothing is branched on but the mark of a slow block; rsi is the RingBlock, edi the vCPU's number,
// and rbp, which slow blocks need, is not touched. The order of the last stores is part of the
// format: run, head, open block.
asm(R"(
  .text
  .p2align 6
  .globl tailtrace_block_entry
  .hidden tailtrace_block_entry
  .type tailtrace_block_entry, @function
tailtrace_block_entry:
  mov (%rsi), %r8                               # pc = block->begin
  mov tailtrace_ring@gottpoff(%rip), %rax
  mov %fs:(%rax), %rax                          # ring
  test %r8, %r8
  js 1f
  mov 144(%rax), %rcx                           # open
  mov 128(%rax), %r9                            # head
  mov 24(%rcx), %rdx
  mov 16(%rcx), %r10                            # open->last
  add 136(%rax), %rdx                           # tail = run_insns + open->tail
  mov 160(%rax), %r11
  and %r9, %r11
  lea 4096(%rax, %r11), %r11                    # slot
  prefetchw 256(%r11)
  mov %r10, (%r11)
  mov %r8, 8(%r11)
  mov 152(%rax), %r10
  mov %r10, 16(%r11)
  mov %rdx, 24(%r11)
  lea 32(%r9), %r10
  mov %edx, %edx
  xor %r11d, %r11d
  cmp 8(%rcx), %r8                              # leaves = pc != open->next
  cmovne %r11, %rdx
  cmove %r9, %r10
  mov %rdx, 136(%rax)
  mov %r10, 128(%rax)
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
