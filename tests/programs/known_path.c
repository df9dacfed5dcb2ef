// A path that can be counted by hand: from `known` to `after` exactly 12 instructions run.
//
//   known   mov                1
//           dec, jnz, 3 times  6
//           call leaf          1
//   leaf    nop, ret           2
//   known   jmp over a nop     1
//           ret                1
__asm__(
    ".pushsection .text\n"
    ".globl known\n .type known, @function\n"
    "known:\n"
    "  mov $3, %ecx\n"
    "1: dec %ecx\n"
    "  jnz 1b\n"
    "  call leaf\n"
    "  jmp 2f\n"
    "  nop\n"
    "2: ret\n"
    ".size known, . - known\n"
    ".globl leaf\n .type leaf, @function\n"
    "leaf:\n"
    "  nop\n"
    "  ret\n"
    ".size leaf, . - leaf\n"
    ".globl start\n .type start, @function\n"
    "start:\n"
    "  call known\n"
    ".globl after\n"
    "after:\n"
    "  ret\n"
    ".size start, . - start\n"
    ".popsection\n");

void start(void);

int main(void) {
  start();
  return 0;
}
