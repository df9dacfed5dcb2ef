// Stores to a variable in all ways that the processor has, whole and in part; with an argument, by
// two threads at once.
#include <emmintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
  char before[16];
  long value;
  char behind[16];
} all __attribute__((aligned(64)));

static char* at(int offset) { return (char*)&all.value + offset; }

static void by_changing(void) {
  long x = 7;
  __asm__ volatile("addq $5, %0" : "+m"(all.value));
  __asm__ volatile("lock addq $5, %0" : "+m"(all.value));
  __asm__ volatile("xchgq %1, %0" : "+m"(all.value), "+r"(x));
  __asm__ volatile("lock xaddq %1, %0" : "+m"(all.value), "+r"(x));
  __asm__ volatile("rolq $9, %0" : "+m"(all.value));
  __asm__ volatile("incl %0" : "+m"(*(int*)at(2)));
  __asm__ volatile("addl $0x10001, %0" : "+m"(*(int*)at(-2)));  // across its begin
  __asm__ volatile("addq $3, %0" : "+m"(*(long*)at(4)));        // across its end
  int low = (int)all.value, high = (int)(all.value >> 32);
  __asm__ volatile("lock cmpxchg8b %0" : "+m"(all.value), "+a"(low), "+d"(high) : "b"(1), "c"(2));
}

static void by_storing(void) {
  char text[40];
  void *to = &all, *from = text;
  long count = sizeof text;
  memset(text, 3, sizeof text);
  _mm_storeu_si128((__m128i*)at(-4), _mm_set1_epi8(5));
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  to = &all, count = 5;
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(0x42) : "memory");
  __asm__ volatile("pushq $77; popq %0" : "=m"(all.value));
  __asm__ volatile("fld1; fstpt %0" : "=m"(*(long double*)at(-2)));
}

// The kernel's own store is none of the program's instructions.
static void behind_the_kernel(void) {
  int ends[2];
  long sent = 99;
  if (pipe(ends) != 0 || write(ends[1], &sent, 8) != 8 || read(ends[0], &all.value, 8) != 8) return;
  __asm__ volatile("addq $5, %0" : "+m"(all.value));
}

static void* count_up(void* unused) {
  for (int i = 0; i < 5; ++i) __asm__ volatile("lock incq %0" : "+m"(all.value));
  return unused;
}

static void by_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, count_up, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
}

static void done(void) { printf("%lx\n", all.value); }

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {
    by_threads();
  } else {
    by_changing();
    by_storing();
    behind_the_kernel();
  }
  done();
}
