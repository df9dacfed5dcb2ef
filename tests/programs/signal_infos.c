// Signals of all origins, each of which comes once: accesses and jumps to where nothing is or that
// is not allowed, instructions that may not be, and what processes send.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf behind;

__attribute__((noinline)) void on_signal(int number, siginfo_t* info, void* context) {
  (void)context;
  if (info->si_code > 0 && number != SIGCHLD) siglongjmp(behind, 1);
}

static void faults(char* readable) {
  if (sigsetjmp(behind, 1) == 0) *(volatile int*)0x1234 = 1;
  if (sigsetjmp(behind, 1) == 0) *(volatile char*)readable = 1;
  if (sigsetjmp(behind, 1) == 0) *(volatile char*)0x8000123456789abc = 1;  // no address at all
  if (sigsetjmp(behind, 1) == 0) ((void (*)(void))0x5678)();
  if (sigsetjmp(behind, 1) == 0) ((void (*)(void))readable)();
  if (sigsetjmp(behind, 1) == 0) __asm__ volatile("hlt");
  if (sigsetjmp(behind, 1) == 0) __asm__ volatile("ud2");
  if (sigsetjmp(behind, 1) == 0)
    __asm__ volatile("xor %%ecx, %%ecx; div %%ecx" : : "a"(7), "d"(0) : "rcx");
}

int main(void) {
  const int kNumbers[] = {SIGSEGV, SIGFPE, SIGILL, SIGUSR1, SIGUSR2, SIGCHLD, SIGRTMIN + 1};
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  for (unsigned i = 0; i < sizeof kNumbers / sizeof *kNumbers; ++i)
    sigaction(kNumbers[i], &action, NULL);
  faults(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 41});
  raise(SIGUSR1);
  sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42});
  if (fork() == 0) _exit(7);
  wait(NULL);
  return 0;
}
