// Functions that have more than one name, or whose code is chosen as the program starts.
#include <stdio.h>
#include <string.h>

int twice(int n) { return 2 * n; }
int doubled(int n) __attribute__((alias("twice")));

__attribute__((used)) static int never(int n) { return n + 1; }

static int plain_sum(int n) {
  int sum = 0;
  for (int i = 1; i <= n; ++i) sum += i;
  return sum;
}
static int quick_sum(int n) { return n * (n + 1) / 2; }

static int (*choose_sum(void))(int) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? quick_sum : plain_sum;
}
int sum_up_to(int n) __attribute__((ifunc("choose_sum")));

// It is not told by its resolver's code which there are.
static int (*volatile sums[])(int) = {quick_sum, plain_sum};
static int (*choose_listed(void))(int) { return sums[0]; }
int listed(int n) __attribute__((ifunc("choose_listed")));

int main(int argc, char** argv) {
  int total = 0;
  char text[64] = "";
  for (int i = 0; i < 3; ++i) total += sum_up_to(i + argc) + doubled(i);
  for (int i = 0; i < 5; ++i) total += twice(total % 7);
  for (int i = 0; i < 4; ++i) {
    memcpy(text + i, argv[0], (size_t)argc);
    total += (int)strlen(text);
  }
  printf("%d\n", total);
  return 0;
}
