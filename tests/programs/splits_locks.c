/* One thread turns in a loop of four instructions, a trap before it; the other one changes a number
   that two cache lines share, with a lock: for each time qemu has all others stand still. */
#include <pthread.h>
#include <stdint.h>

static _Alignas(64) unsigned char lines[128];
static volatile int has_begun;

static void* split(void* unused) {
  (void)unused;
  uint64_t* shared = (uint64_t*)(lines + 60);
  for (;; has_begun = 1) __asm__ volatile("lock incq %0" : "+m"(*shared));
  return 0;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, 0, split, 0) != 0) return 1;
  while (!has_begun) continue;
  __asm__ volatile("int3; 1: nop; nop; nop; jmp 1b");
}
