// Works for a while beside threads that wait for it in a system call, and then waits for one of
// them in a loop. Its exit status tells whether these were let run but a few times meanwhile.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { kWaiters = 2, kRounds = 300, kMostRuns = 1000 };
static int to_waiters[2];
static _Atomic(pid_t) waiters[kWaiters];
static atomic_int woken;

static void* wait_for_work(void* place) {
  char byte;
  *(_Atomic(pid_t)*)place = gettid();
  if (read(to_waiters[0], &byte, 1) == 1) ++woken;
  return NULL;
}

// How often it was let run, the third number there (the kernel's sched-stats.rst).
static long runs_of(pid_t thread) {
  char name[64], line[128] = "";
  long runs = 0;
  snprintf(name, sizeof name, "/proc/self/task/%d/schedstat", thread);
  const int file = open(name, O_RDONLY);
  if (read(file, line, sizeof line - 1) > 0) sscanf(line, "%*d %*d %ld", &runs);
  close(file);
  return runs;
}

__attribute__((noinline)) static void work(void) {
  for (volatile int i = 0; i < kRounds; ++i) {
  }
}

int main(void) {
  pthread_t threads[kWaiters];
  if (pipe(to_waiters) != 0) return 1;
  for (int i = 0; i < kWaiters; ++i)
    if (pthread_create(&threads[i], NULL, wait_for_work, (void*)&waiters[i]) != 0) return 1;
  for (int i = 0; i < kWaiters; ++i)
    while (waiters[i] == 0) {
    }
  const long before = runs_of(waiters[0]);
  work();
  const long runs = runs_of(waiters[0]) - before;
  if (write(to_waiters[1], "ab", kWaiters) != kWaiters) return 1;
  while (woken != kWaiters) {
  }
  for (int i = 0; i < kWaiters; ++i) pthread_join(threads[i], NULL);
  return before != 0 && runs <= kMostRuns ? 0 : 2;
}
