// Calls itself, returns through many frames, loops inside.
#include <stdio.h>

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static int depth(int n) {
  int sum = 0;
  for (int i = 0; i < n % 5; ++i) sum += i;
  return n == 0 ? sum : sum + depth(n - 1);
}

int main(void) {
  printf("%d %d\n", fibonacci(12), depth(200));
  return 0;
}
