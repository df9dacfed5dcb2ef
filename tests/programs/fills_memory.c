// Clears and copies much memory by single instructions, one of which faults on the way.
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { kMuch = 16 << 20, kPage = 4096 };

static char* memory;
static volatile int faults;

static void on_fault(int signal) {
  (void)signal;
  ++faults;
  mprotect(memory + kMuch / 2, kPage, PROT_READ | PROT_WRITE);
}

__attribute__((noinline)) static void fill(char* at, unsigned long bytes, int value) {
  __asm__ volatile("rep stosb\n.globl behind_fill\nbehind_fill: nop"
                   : "+D"(at), "+c"(bytes)
                   : "a"(value)
                   : "memory");
}

__attribute__((noinline)) static void copy(char* to, const char* from, unsigned long bytes) {
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

__attribute__((noinline)) static int differ(const char* a, const char* b, unsigned long bytes) {
  int result;
  __asm__ volatile("repe cmpsb\n\tsetne %b0\n\tmovzbl %b0, %0"
                   : "=q"(result), "+S"(a), "+D"(b), "+c"(bytes)
                   :
                   : "memory", "cc");
  return result;
}

__attribute__((noinline)) static void done(void) { __asm__ volatile(""); }

int main(void) {
  memory = mmap(0, 2 * kMuch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  signal(SIGSEGV, on_fault);
  fill(memory, 1000, 6);
  mprotect(memory + kMuch / 2, kPage, PROT_NONE);
  fill(memory, kMuch, 7);
  copy(memory + kMuch, memory, kMuch);
  memory[kMuch - 1] = 8;
  int wrong = !differ(memory, memory + kMuch, kMuch) || differ(memory, memory + kMuch, kMuch - 1);
  done();
  return wrong || faults != 1 || memory[kMuch / 2] != 7 || memory[2 * kMuch - 1] != 7;
}
