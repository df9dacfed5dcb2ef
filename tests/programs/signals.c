// Signals of all sorts: sent to itself; faults in the middle of straight code whose handler mends
// the cause, steps over it, or jumps out; a fault while another handler runs; a call of a handler
// as a plain function; a jump to where no code is.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static volatile int taken;
static sigjmp_buf out;
static char* page;

static void count(int signal) { taken += signal; }

static void mend(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)context;
  taken += 100;
  mprotect((void*)((unsigned long)info->si_addr & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

static void step_over(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  taken += 1000;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 2;  // UD2, or DIV of a register
  raise(SIGUSR1);
}

static void jump_out(int signal) {
  taken += 10000;
  siglongjmp(out, signal);
}

static void on(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(signal, &action, 0);
}

static void send_to_itself(void) {
  count(0);  // translated before it is a handler
  signal(SIGUSR1, count);
  signal(SIGUSR2, count);
  raise(SIGUSR1);
  kill(getpid(), SIGUSR2);
  count(0);  // and called while it is one
  sigset_t both, old;
  sigemptyset(&both);
  sigaddset(&both, SIGUSR1);
  sigaddset(&both, SIGUSR2);
  sigprocmask(SIG_BLOCK, &both, &old);
  raise(SIGUSR1);
  raise(SIGUSR2);
  sigprocmask(SIG_SETMASK, &old, 0);  // both at once
}

static void fault(void) {
  page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  on(SIGSEGV, mend);
  int before = taken;
  page[before % 7] = 1;  // in the middle of a block
  taken += page[3] + before;
  on(SIGILL, step_over);
  __asm__ volatile("nop; ud2; nop");
  on(SIGFPE, step_over);
  __asm__ volatile("xor %%ecx, %%ecx; div %%ecx; nop" : : "a"(7), "d"(0) : "rcx");
  mprotect(page, 4096, PROT_NONE);
  __asm__ volatile("rep stosb" : : "D"(page), "c"(100ul), "a"(7) : "memory");
}

static void jump_away(void) {
  signal(SIGSEGV, jump_out);
  if (sigsetjmp(out, 1) == 0) *(volatile int*)8 = 1;
  if (sigsetjmp(out, 1) == 0) ((void (*)(void))16)();
  signal(SIGTRAP, count);
  __asm__ volatile("nop; int3; nop");
}

int main(void) {
  send_to_itself();
  fault();
  jump_away();
  printf("%d\n", taken);
  return 0;
}
