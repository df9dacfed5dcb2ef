// Two threads that wait for each other without the kernel, and so come to the same place at once.
// Its instructions end in the byte of a trap.
#include <pthread.h>
#include <stdatomic.h>

static atomic_int arrived;

__attribute__((noipa)) void together(void) {
  __asm__ volatile(".rept 100; movl $0xcc000000, %%eax; .endr" ::: "eax");
}

__attribute__((noipa)) void apart(void) { __asm__ volatile(""); }

static void* meet(void* argument) {
  for (int round = 1; round <= 9; ++round) {
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 2 * round) continue;
    together();
    apart();
  }
  return argument;
}

int main(void) {
  pthread_t other;
  pthread_create(&other, 0, meet, 0);
  meet(0);
  pthread_join(other, 0);
  return 0;
}
