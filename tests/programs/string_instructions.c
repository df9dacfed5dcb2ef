// REP string instructions of all lengths, 0 included, alone and in loops.
#include <stdio.h>

static char from[300], to[300];

static void copy(unsigned long n) {
  char *d = to, *s = from;
  __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static unsigned long length(const char* text) {
  unsigned long left = ~0ul;
  __asm__ volatile("repne scasb" : "+D"(text), "+c"(left) : "a"(0) : "memory", "cc");
  return ~left - 1;
}

static int differ(unsigned long n) {
  char *d = to, *s = from;
  unsigned char equal;
  __asm__ volatile("cmp %%eax, %%eax; repe cmpsb; sete %0"
                   : "=q"(equal), "+D"(d), "+S"(s), "+c"(n)
                   :
                   : "memory", "cc");
  return !equal;
}

// The loop's jump goes straight to the string instruction.
static void fill_rows(void) {
  unsigned long rows = 5;
  char* d = to;
  __asm__ volatile(
      "1: mov $7, %%ecx\n"
      "2: rep stosb\n"
      "dec %0\n"
      "mov $3, %%ecx\n"
      "jnz 2b\n"
      : "+r"(rows), "+D"(d)
      : "a"(9)
      : "rcx", "memory", "cc");
}

int main(void) {
  unsigned long sum = 0;
  for (int i = 0; i < 299; ++i) from[i] = (char)('a' + i % 26);
  for (unsigned long n = 0; n < 20; ++n) {
    copy(n * 7);
    sum += length(to) + (unsigned long)differ(n * 9);
  }
  fill_rows();
  printf("%lu\n", sum);
  return 0;
}
