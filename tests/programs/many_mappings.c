// Maps and unmaps many stretches of memory, moves the heap's end up and down, and works in all of
// it; code that is run lies in some of them.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMappings = 400, kPage = 4096 };

typedef int (*Function)(int);

// lea eax, [rdi + n]; ret
static void write_function(unsigned char* at, unsigned char n) {
  unsigned char code[] = {0x8d, 0x47, n, 0xc3};
  memcpy(at, code, sizeof code);
}

static unsigned char* map(size_t size, int protection) {
  void* at = mmap(0, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? 0 : at;
}

static int use_heap(void) {
  char* begin = sbrk(0);
  int sum = 0;
  for (int i = 1; i <= 16; ++i) {
    if (sbrk(64 * kPage) == (void*)-1) return -1;
    memset(begin, i, (size_t)i * 64);
    sum += begin[i * 64 - 1];
  }
  if (brk(begin) != 0) return -1;
  return sum;
}

int main(void) {
  static unsigned char* places[kMappings];
  int sum = 0;
  for (int i = 0; i < kMappings; ++i) {
    // Different protections next to each other cannot become one mapping.
    int protection = PROT_READ | PROT_WRITE | (i % 2 != 0 ? PROT_EXEC : 0);
    places[i] = map((size_t)(i % 5 + 1) * kPage, protection);
    if (places[i] == 0) return 2;
    if (i % 2 == 0) continue;
    write_function(places[i], (unsigned char)(i % 100));
    sum += ((Function)places[i])(i);
  }
  for (int i = 0; i < kMappings; i += 3) munmap(places[i], kPage);
  for (int i = 1; i < kMappings; i += 2)
    if (i % 3 != 0) sum += ((Function)places[i])(1);
  // Another program's worth of code at the same addresses.
  for (int i = 3; i < kMappings; i += 6) {
    void* at = mmap(places[i], kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) return 3;
    write_function(at, 7);
    sum += ((Function)at)(i);
  }
  sum += use_heap();
  printf("%d\n", sum);
  return 0;
}
