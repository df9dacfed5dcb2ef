// Lines whose code an optimizer mixes, and puts into other functions.
#include <stdio.h>

static int weigh(const char* text, int k) {
  int sum = 0;
  for (; *text != 0; ++text) {
    if (*text == 'x') continue;
    sum += *text * k;
    k ^= sum;
  }
  return sum;
}

__attribute__((noinline)) static int work(int n, int* values) {
  int total = 0;
  for (int i = 0; i < n; ++i) {
    int k = i * 3;
    if (k % 2)
      total += k;
    else
      total -= weigh("axbxc", k);
    values[i] = total;
  }
  return total;
}

int main(void) {
  int values[8];
  int total = work(5, values);
  total += work(3, values);
  printf("%d\n", total);
  return total == 0;
}
