// Functions that jump at their end: to each other, and to their own begin, which is a loop's. They
// do that in several lines and in a single one.
volatile int sink;

int odd(int n);
int even(int n) {
  sink = n;
  if (n == 0) return 1;
  return odd(n - 1);
}

int odd(int n) {
  sink = n + 1;
  if (n == 0) return 0;
  return even(n - 1);
}

void spin(int n) {
  do {
    sink = n;
    sink += 1;
  } while (--n);
}

// clang-format off
__attribute__((optimize("Os")))
void spin_in_a_line(int n) { for (;;) { sink = n; if (n == 0) break; --n; } }
// clang-format on

int waits_for(int n) {
  spin_in_a_line(n);
  sink = n;
  return even(n);
}

int main(void) {
  sink = even(5);
  spin(3);
  spin_in_a_line(3);
  sink = waits_for(2);
  return 0;
}
