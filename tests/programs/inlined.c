// A function without a frame of its own, in one that has one.
static volatile int total;

__attribute__((always_inline)) static inline void add(int n) {
  total += n;  // inlined
}

void add_twice(int n) {
  add(n);
  add(n + 1);
}

int main(void) {
  add_twice(3);
  return total != 7;  // the end
}
