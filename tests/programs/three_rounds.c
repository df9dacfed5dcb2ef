// Calls a small tree of functions three times, and frees what it allocated in another function.
#include <stdlib.h>

static int inc(int x) { return x + 1; }

static int twice(int x) {
  x = inc(x);
  return inc(x) + 1;
}

static void clean_up(void* what) { free(what); }

int main(void) {
  int total = 0;
  for (int i = 0; i < 3; ++i) {
    void* room = malloc(16);
    total += twice(i);
    clean_up(room);
  }
  return total;
}
