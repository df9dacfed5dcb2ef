// Reads the time while other threads wait: the more of these a debugger has to stop for each step,
// the longer takes a step, and the kernel changes what is read meanwhile.
#include <pthread.h>
#include <time.h>

enum { kThreads = 20, kReads = 2, kCoarseReads = 4 };

static pthread_barrier_t end;

static void* wait_for_end(void* nothing) {
  pthread_barrier_wait(&end);
  return nothing;
}

__attribute__((noinline)) static void begin(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void done(long nanoseconds) {
  __asm__ volatile("" : : "r"(nanoseconds));
}

int main(void) {
  pthread_t threads[kThreads];
  struct timespec now = {0, 0};
  pthread_barrier_init(&end, 0, kThreads + 1);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], 0, wait_for_end, 0);
  begin();
  for (int i = 0; i < kReads; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  for (int i = 0; i < kCoarseReads; ++i) clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  done(now.tv_nsec);
  pthread_barrier_wait(&end);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], 0);
  return 0;
}
