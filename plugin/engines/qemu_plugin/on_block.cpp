#include "plugin/engines/qemu_plugin/on_block.h"

#include "plugin/engines/qemu_plugin/rings.h"

// The compiler must not see rbp before we have it.
asm(R"(
  .text
  .p2align 6
  .globl tailtrace_block_entry
  .hidden tailtrace_block_entry
  .type tailtrace_block_entry, @function
tailtrace_block_entry:
  mov %rbp, %rdx
  jmp tailtrace_on_block
  .size tailtrace_block_entry, . - tailtrace_block_entry
)");

using namespace tailtrace;

// Vectors would pack values that are needed one by one at the next block.
extern "C" __attribute__((hot, aligned(64), used, optimize("no-tree-slp-vectorize"))) void
tailtrace_on_block(unsigned cpu, const RingBlock* block, std::uint64_t* registers) {
  std::uint64_t pc = block->begin;
  if (static_cast<std::int64_t>(pc) < 0) [[unlikely]] {
    on_slow_block(cpu, block, registers);
    return;
  }
  step(ring_of(cpu), block, pc);
}
