// System calls at an instruction that has a name, with a `nop` behind it; a signal that is handled.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static unsigned long all = ~0ul, none = 0;

// As the kernel has it: a set of signals is one word.
long call(long number, long a, const void* b);

__asm__(
    ".text\n"
    ".globl call, call_at, call_behind\n"
    "call:\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  mov %rdx, %rsi\n"
    "  xor %edx, %edx\n"
    "  mov $8, %r10d\n"
    "call_at: syscall\n"
    "call_behind: nop\n"
    "  nop\n"
    "  ret\n");

static void handle(int number) { (void)number; }

__attribute__((noinline)) void begin(void) { __asm__ volatile(""); }

// Whether the child ended as it should.
__attribute__((noinline)) int end(int status) { return WIFEXITED(status) ? 0 : 1; }

int main(void) {
  int status = -1;
  signal(SIGUSR1, handle);
  begin();
  call(SYS_getppid, 0, 0);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &all);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &none);
  if (call(SYS_fork, 0, 0) == 0) call(SYS_exit, 0, 0);
  wait(&status);
  raise(SIGUSR1);
  return end(status);
}
