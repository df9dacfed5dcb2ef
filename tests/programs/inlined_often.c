// Functions without a frame of their own: in several places, inside of each other, in loops; one of
// them has a frame as well, for who takes its address.
static volatile int total;

__attribute__((always_inline)) static inline void add(int n) {
  total += n;  // inlined
}

__attribute__((always_inline)) static inline void add_all(int n) {
  for (int i = 0; i < n; ++i) add(i);  // inlined, too
}

void twice(int n) {
  add_all(n);
  total -= 1;
  add_all(n + 1);
}

void (*volatile by_pointer)(int) = add;

int main(void) {
  twice(3);
  add(1);
  by_pointer(2);
  by_pointer(3);
  return total != 14;
}
