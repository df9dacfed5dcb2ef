// A library whose constructor makes a thread, which counts when it is told to. Where ENDS_EARLY is
// in the environment, the program ends there.
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

volatile long counted;
static sem_t may_count;
static pthread_t thread;

__attribute__((noipa)) void count(long n) { counted = n; }

static void* run(void* unused) {
  sem_wait(&may_count);
  for (long i = 0; i < 3; ++i) count(i);
  return unused;
}

__attribute__((constructor)) static void begin(void) {
  if (getenv("ENDS_EARLY") != NULL) _exit(3);
  count(-1);
  sem_init(&may_count, 0, 0);
  if (pthread_create(&thread, NULL, run, NULL) != 0) _exit(1);
}

void let_count(void) {
  count(10);
  sem_post(&may_count);
  pthread_join(thread, NULL);
}
