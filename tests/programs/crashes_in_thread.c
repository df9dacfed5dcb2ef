// The last of three threads stores to where nothing is, while the program's first waits for it.
#include <pthread.h>
#include <stddef.h>

static int place;
static int* places[] = {&place, &place, NULL};

static void store(int* to, int value) {
  if (value < 0) return;
  *to = value;
}

static void* work(void* number) {
  store(places[(size_t)number], 7);
  return NULL;
}

int main(void) {
  pthread_t threads[3];
  for (size_t i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, work, (void*)i);
    pthread_join(threads[i], NULL);
  }
  return 0;
}
