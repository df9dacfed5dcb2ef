// A signal that its handler counts, and behind it a thread that is waited for.
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static volatile int counted;
volatile int done;

static void count(int signal) { counted = signal; }

__attribute__((noipa)) void work(void) { done = 1; }

static void* run(void* unused) {
  work();
  return unused;
}

int main(void) {
  signal(SIGUSR1, count);
  raise(SIGUSR1);
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, NULL) != 0) return 2;
  pthread_join(thread, NULL);
  return counted == SIGUSR1 && done == 1 ? 0 : 1;
}
