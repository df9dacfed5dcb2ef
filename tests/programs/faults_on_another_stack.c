// Faults, a hundred of them, whose handler has a stack of its own and steps over the instruction,
// while a timer interrupts all the time.
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

enum { kFaults = 100, kLoad_bytes = 3 };

static volatile int faults, ticks;
static char stack[1 << 16];

static void tick(int signal) {
  (void)signal;
  ++ticks;
}

static void step_over(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  ++faults;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += kLoad_bytes;
}

__attribute__((noinline)) static void load(const long* from) {
  __asm__ volatile("mov (%0), %%rax" ::"r"(from) : "rax");
}

__attribute__((noinline)) static void spin(void) {
  for (volatile int i = 0; i < 20000; ++i) {
  }
}

__attribute__((noinline)) int end(int count) { return count == kFaults ? 0 : 1; }

int main(void) {
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&other, 0);
  struct sigaction fault = {.sa_sigaction = step_over, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &fault, 0);
  signal(SIGALRM, tick);
  struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, 0);
  for (int i = 0; i < kFaults; ++i) {
    load((const long*)8);
    spin();
  }
  setitimer(ITIMER_REAL, &never, 0);
  return end(faults);
}
