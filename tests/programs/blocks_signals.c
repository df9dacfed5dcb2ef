// Blocks all signals, makes a system call, stores and unblocks them; then faults, twice, which it
// handles.
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile long stored;
static volatile int faults;
static sigjmp_buf behind;

static void on_fault(int signal) {
  ++faults;
  siglongjmp(behind, signal);
}

__attribute__((noinline)) static void while_blocked(void) {
  sigset_t all, old;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old);
  syscall(SYS_getppid);
  stored = 1;
  stored = 2;
  sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(void) {
  struct sigaction action = {.sa_handler = on_fault};
  sigemptyset(&action.sa_mask);
  for (int signal = SIGILL; signal <= SIGSEGV; signal += SIGSEGV - SIGILL)
    sigaction(signal, &action, NULL);
  while_blocked();
  for (int i = 0; i < 2; ++i)
    if (sigsetjmp(behind, 1) == 0) *(volatile int*)8 = 1;
  return faults != 2;
}
