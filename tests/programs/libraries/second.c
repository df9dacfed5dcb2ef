// The same code as in first.c,
// under other names and
// on other lines.
static inline __attribute__((always_inline)) int second_inlined(int x) {
  int sum = 0;
  while (x > 0) sum += x--;
  return sum;
}

int second_step(int x) { return second_inlined(x) + 3; }

int plug(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum += second_step(i);
  return sum;
}
