// Thread-local variables of the program and of the C library, and a thread with a name of its own.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

__thread int mine = 5;
static __thread long untouched[4] = {1, 2, 3, 4};

__attribute__((noinline)) void reached(long* n) { __asm__ volatile("" ::"r"(n) : "memory"); }

static void* work(void* unused) {
  pthread_setname_np(pthread_self(), "a <worker>");
  mine = 7;
  errno = 11;
  untouched[1] = 9;
  reached(untouched);
  return unused;
}

int main(void) {
  pthread_t worker;
  mine++;
  errno = 3;
  pthread_create(&worker, 0, work, 0);
  pthread_join(worker, 0);
  reached(untouched);
  return 0;
}
