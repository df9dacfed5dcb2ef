// Three threads that each work between work_begin() and work_end(), at the same time but without
// sharing anything there. How long: the first argument.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned length = 20;

__attribute__((noipa)) void work_begin(void) {}
__attribute__((noipa)) void work_end(void) {}

static unsigned collatz(unsigned n) {
  unsigned steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

static void* work(void* argument) {
  unsigned long from = (unsigned long)argument, sum = 0;
  work_begin();
  for (unsigned n = from; n < from + length; ++n) sum += collatz(n);
  work_end();
  return (void*)sum;
}

int main(int argc, char** argv) {
  if (argc > 1) length = (unsigned)atoi(argv[1]);
  pthread_t threads[2];
  for (unsigned long i = 0; i < 2; ++i)
    pthread_create(&threads[i], 0, work, (void*)(100 * (i + 1)));
  unsigned long sum = (unsigned long)work((void*)1);
  for (int i = 0; i < 2; ++i) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (unsigned long)result;
  }
  printf("%lu\n", sum);
  return 0;
}
