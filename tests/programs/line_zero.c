// Code of no line, as compilers make it for themselves, between two lines.
#pragma GCC optimize("O0")  // each line an instruction or more of its own

int main(void) {
  volatile int x = 1;
  x = x + 2;                                      // before it
  __asm__ volatile("nop; .loc 1 0 0; nop; nop");  // what ends in no line
  x = x + 3;                                      // behind it
  return x != 6;
}
