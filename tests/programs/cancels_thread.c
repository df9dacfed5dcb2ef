// Cancels a thread, which the thread library does by a signal of its own.
#include <pthread.h>
#include <unistd.h>

static void* wait_for_ever(void* ready) {
  pthread_barrier_wait(ready);
  for (;;) pause();
}

int main(void) {
  pthread_barrier_t ready;
  pthread_t thread;
  void* result = 0;
  pthread_barrier_init(&ready, 0, 2);
  pthread_create(&thread, 0, wait_for_ever, &ready);
  pthread_barrier_wait(&ready);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  return result != PTHREAD_CANCELED;
}
