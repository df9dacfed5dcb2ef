// Goes on in another thread when the first has ended.
#include <pthread.h>

static pthread_t first;

__attribute__((noinline)) int work(int n) {
  __asm__ volatile("");
  return n * 3;
}

static void* go_on(void* unused) {
  pthread_join(first, 0);
  return work(14) == 42 ? unused : &first;
}

int main(void) {
  pthread_t thread;
  first = pthread_self();
  if (pthread_create(&thread, 0, go_on, 0) != 0) return 1;
  pthread_exit(0);
}
