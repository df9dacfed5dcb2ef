// Code that is gone or another one when the program stops: a function unmapped after its call, and
// one replaced by another that is as long; then something that is still there.
#include <string.h>
#include <sys/mman.h>

typedef int (*Function)(void);

// mov eax, N; ret
static void write_function(unsigned char* at, int n) {
  unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
  memcpy(code + 1, &n, sizeof n);
  memcpy(at, code, sizeof code);
}

static unsigned char* new_page(void) {
  return mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

__attribute__((noinline)) int work(int n) {
  for (int i = 0; i < 3; ++i) n = n * 3 + i;
  return n;
}

__attribute__((noinline)) int replaced(void) {
  unsigned char* page = new_page();
  write_function(page, 0x1111);
  int sum = ((Function)page)();
  write_function(page, 0x2222);
  return sum;
}

__attribute__((noinline)) int unmapped(void) {
  unsigned char* page = new_page();
  write_function(page, 0x3333);
  int sum = ((Function)page)();
  munmap(page, 4096);
  return sum;
}

__attribute__((noinline)) void stop_here(int sum) { __asm__ volatile("" ::"r"(sum)); }

int main(void) {
  int sum = work(1);
  sum += replaced();
  sum += work(sum);
  sum += unmapped();
  sum += work(sum);
  stop_here(sum);
  return 0;
}
