// Code that is written at run time: a function made, rewritten in place many times, and one that
// changes the instructions just ahead of itself.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*Function)(int);

// mov eax, N; add eax, edi; ret
static void write_add(unsigned char* at, int n) {
  unsigned char code[] = {0xb8, 0, 0, 0, 0, 0x01, 0xf8, 0xc3};
  memcpy(code + 1, &n, sizeof n);
  memcpy(at, code, sizeof code);
}

// Like it, but longer by a loop: mov eax, N; again: add eax, edi; dec edi; jnz again; ret
static void write_loop(unsigned char* at, int n) {
  unsigned char code[] = {0xb8, 0, 0, 0, 0, 0x01, 0xf8, 0xff, 0xcf, 0x75, 0xfa, 0xc3};
  memcpy(code + 1, &n, sizeof n);
  memcpy(at, code, sizeof code);
}

// Writes a NOP over the INC that comes next but one in the same block, then an INC again:
//   lea rdx, [rip + target]; mov word [rdx], BYTES; xor eax, eax; target: inc eax; inc eax; ret
static void write_self_modifying(unsigned char* at, unsigned bytes) {
  unsigned char code[] = {0x48, 0x8d, 0x15, 0x07, 0,    0,    0,    0x66, 0xc7, 0x02,
                          0,    0,    0x31, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xc3};
  code[10] = (unsigned char)bytes;
  code[11] = (unsigned char)(bytes >> 8);
  memcpy(at, code, sizeof code);
}

int main(void) {
  unsigned char* page =
      mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Function f = (Function)page, g = (Function)(page + 64), h = (Function)(page + 128);
  int sum = 0;
  write_add(page + 64, 1);
  sum += g(1);
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0)
      write_loop(page, i);
    else
      write_add(page, i);
    sum += f(3) + g(i);
  }
  write_self_modifying(page + 128, 0x9066);  // a two-byte NOP
  for (int i = 0; i < 3; ++i) sum += h(0);
  write_self_modifying(page + 128, 0xc0ff);  // INC EAX
  for (int i = 0; i < 3; ++i) sum += h(0);
  // A function that crosses into the next page.
  unsigned char* edge = page + 4096 - 3;
  write_add(edge, 5);
  sum += ((Function)edge)(1);
  write_loop(edge, 6);
  sum += ((Function)edge)(2);
  printf("%d\n", sum);
  return 0;
}
