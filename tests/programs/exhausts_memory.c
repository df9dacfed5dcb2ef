// Takes memory until there is none left (setrlimit(2), RLIMIT_AS), down to the last page, and
// aborts.
#include <stdlib.h>
#include <sys/mman.h>

static void take_all(size_t piece_bytes) {
  while (mmap(0, piece_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
  }
}

int main(void) {
  take_all(1 << 20);
  take_all(4096);
  abort();
}
