// The same code as in second.c, under other names and on other lines.
static inline __attribute__((always_inline)) int first_inlined(int x) {
  int sum = 0;
  while (x > 0) sum += x--;
  return sum;
}

int first_step(int x) { return first_inlined(x) + 3; }

int plug(int rounds) {
  int sum = 0;
  for (int i = 0; i < rounds; ++i) sum += first_step(i);
  return sum;
}
