// `many_threads ROUNDS WIDTH`: rounds of WIDTH threads at once, each of which does the same work;
// a round begins when the one before has ended.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noipa)) void work_begin(void) {}
__attribute__((noipa)) void work_end(void) {}
__attribute__((noipa)) static int leaf(int x) { return x % 3 ? x + 1 : x / 2; }

static void* work(void* result) {
  int sum = 0;
  work_begin();
  for (int i = 0; i < 300; ++i) sum += leaf(i);
  work_end();
  *(int*)result = sum;
  return 0;
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1, width = argc > 2 ? atoi(argv[2]) : 1;
  pthread_t* threads = calloc((size_t)width, sizeof *threads);
  int* results = calloc((size_t)width, sizeof *results);
  long sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < width; ++i)
      if (pthread_create(&threads[i], 0, work, &results[i]) != 0) return 2;
    for (int i = 0; i < width; ++i) {
      pthread_join(threads[i], 0);
      sum += results[i];
    }
  }
  printf("%ld\n", sum);
  return 0;
}
