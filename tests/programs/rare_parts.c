// A function of which the compiler splits off what it does one time in ten: a line has code in both
// parts, and another one in that part only.
static int sum;

__attribute__((noinline, cold)) void rarely(int n) {
  sum += n;
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) int often(int n) {
  int tripled = n * 3;
  __asm__ volatile("" : "+r"(tripled));
  // clang-format off
  if (__builtin_expect(n % 10 == 0, 0)) { rarely(n); sum *= 3;  // in both
    rarely(tripled);  // in the rare one
  }
  // clang-format on
  sum += tripled;
  return tripled;
}

int main(void) {
  for (int i = 0; i < 100; ++i) often(i);
  return 0;
}
