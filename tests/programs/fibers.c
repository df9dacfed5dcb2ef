// Stacks that take turns: main's and two more, which all are left in one function, by a return or
// by a jump, and of which one is left deeper than the other.
#include <stdint.h>
#include <stdio.h>

typedef void Switch(void** mine, void* other);
Switch by_return, by_jump;
__asm__(
    ".macro go_over\n"
    "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    ".endm\n"
    ".globl by_return, by_jump\n"
    ".type by_return, @function\n"
    "by_return: go_over\n"
    "  ret\n"
    ".size by_return, . - by_return\n"
    ".type by_jump, @function\n"
    "by_jump: go_over\n"
    "  pop %rcx\n"
    "  jmp *%rcx\n"
    ".size by_jump, . - by_jump\n");

enum { kMain, kShallow, kDeep, kStacks };
static void* pointers[kStacks];
static uint64_t stacks[kStacks][(1 << 20) / sizeof(uint64_t)] __attribute__((aligned(16)));
static int on;
static volatile int work;

static void step_aside(int to, Switch* way) {
  int from = on;
  on = to;
  way(&pointers[from], pointers[to]);
  work = work + 1;
}

static void rest(int to, Switch* way) {
  step_aside(to, way);
  work = work + 1;
}

static void shallow(void) {
  for (;;) {
    step_aside(kDeep, by_return);
    step_aside(kMain, by_jump);
  }
}

static void deep(void) {
  for (;;) {
    rest(kShallow, by_jump);
    rest(kMain, by_return);
  }
}

static void prepare(int stack, void (*function)(void)) {
  uint64_t* top = stacks[stack] + sizeof stacks[stack] / sizeof(uint64_t) - 2;
  *top = (uint64_t)(uintptr_t)function;
  pointers[stack] = top - 6;  // the registers
}

int main(void) {
  prepare(kShallow, shallow);
  prepare(kDeep, deep);
  for (int i = 0; i < 3; ++i) {
    step_aside(kShallow, by_return);
    rest(kDeep, by_jump);
  }
  printf("%d\n", work);
  return 0;
}
