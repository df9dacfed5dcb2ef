// Functions that end in a jump to another function, directly and through a pointer.
#include <stdio.h>

typedef int (*Step)(int, int);
static int odd(int n, int sum);
static int even(int n, int sum);
static Step steps[2] = {even, odd};

__attribute__((optimize("O2"))) static int even(int n, int sum) {
  if (n == 0) return sum;
  return odd(n - 1, sum + 1);
}

__attribute__((optimize("O2"))) static int odd(int n, int sum) {
  if (n == 0) return -sum;
  return steps[(n - 1) & 1](n - 1, sum + 3);
}

int main(void) {
  int total = 0;
  for (int n = 0; n < 50; ++n) total += even(n, 0);
  printf("%d\n", total);
  return 0;
}
