// Two threads that come to the same place at the same time, again and again, and one that counts
// all the while.
#include <pthread.h>
#include <stdatomic.h>

static pthread_barrier_t barrier;
static atomic_int counts, done;
volatile unsigned long counter;

__attribute__((noipa)) void together(int round) { (void)round; }

static void* meet(void* argument) {
  for (int round = 0; round < 12; ++round) {
    pthread_barrier_wait(&barrier);
    together(round);
  }
  return argument;
}

static void* count(void* argument) {
  atomic_store(&counts, 1);
  while (!atomic_load(&done)) ++counter;
  return argument;
}

int main(void) {
  pthread_t other, counting;
  pthread_barrier_init(&barrier, 0, 2);
  pthread_create(&counting, 0, count, 0);
  while (!atomic_load(&counts)) continue;
  pthread_create(&other, 0, meet, 0);
  meet(0);
  pthread_join(other, 0);
  for (unsigned long counted = counter; counter == counted;)  // however late that one gets to it
    continue;
  atomic_store(&done, 1);
  pthread_join(counting, 0);
  return 0;
}
