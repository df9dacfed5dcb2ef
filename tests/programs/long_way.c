// Comes to a place twice, 20 million instructions apart, which few branches lead through.
static void mark(void) { __asm__ volatile(""); }

static void go_on(void) {
  for (int i = 0; i < 10000; ++i) __asm__ volatile(".rept 2000; nop; .endr");
}

int main(void) {
  mark();
  go_on();
  mark();
  return 0;
}
