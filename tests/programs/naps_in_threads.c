// Threads that sleep for a moment, over and over. A SIGTRAP tells that all are there.
#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { kThreads = 19 };
static pthread_barrier_t all_are_there;

static void nap(void) {
  const struct timespec moment = {0, 5000000};
  for (;;) nanosleep(&moment, 0);
}

static void* begin(void* unused) {
  pthread_barrier_wait(&all_are_there);
  nap();
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_barrier_init(&all_are_there, 0, kThreads + 1);
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&thread, 0, begin, 0) != 0) return 1;
  pthread_barrier_wait(&all_are_there);
  raise(SIGTRAP);
  nap();
}
