// An instruction that faults, a handler that goes round it, and a trap of the program's own.
#include <setjmp.h>
#include <signal.h>

void fault(void);
__asm__(".globl fault\nfault:\n  movl $0, 0\n  ret\n");

static sigjmp_buf behind;

static void on_fault(int signal) { siglongjmp(behind, signal); }

int main(void) {
  signal(SIGSEGV, on_fault);
  if (sigsetjmp(behind, 1) == 0) fault();
  __asm__ volatile("int3");
  return 0;
}
