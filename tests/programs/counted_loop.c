// A loop that is entered at its end, as compilers lay them out: 1,000 rounds, 999 jumps back to a
// round that has been made before.
#pragma GCC optimize("O0")

static int total;

static void add(int n) { total += n; }

int main(void) {
  for (int i = 0; i < 1000; ++i) {
    add(i);
  }
  return total == 0;  // behind the loop
}
