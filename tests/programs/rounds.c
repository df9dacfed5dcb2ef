// `rounds N`: N rounds that are all the same; -1: rounds for ever (a long time). When it has begun
// it says so with one letter. `rounds N kill` ends by SIGKILL behind the last, `rounds N abort`.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noipa)) void round_begin(void) {}

__attribute__((noipa)) int leaf(int x) { return x % 5 == 0 ? x / 5 : x + 1; }

__attribute__((noipa)) int round_work(int (*by_pointer)(int)) {
  int sum = 0;
  for (int i = 0; i < 20; ++i) sum += i % 3 == 0 ? leaf(i) : by_pointer(i);
  return sum;
}

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  volatile int sum = 0;
  if (write(1, "r", 1) != 1) return 2;
  for (long i = 0; i != count; ++i) {
    round_begin();
    sum += round_work(leaf);
  }
  if (argc > 2) *argv[2] == 'a' ? abort() : (void)kill(getpid(), SIGKILL);
  return sum == 0;
}
