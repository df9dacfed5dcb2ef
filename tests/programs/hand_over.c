// A thread that works while the one that made it waits for it to end.
#include <pthread.h>

__attribute__((noipa)) int in_worker(int x) { return x + 1; }

static void* work(void* argument) {
  *(int*)argument = in_worker(*(int*)argument);
  return 0;
}

int main(void) {
  pthread_t worker;
  int x = 1;
  pthread_create(&worker, 0, work, &x);
  pthread_join(worker, 0);
  return x != 2;
}
