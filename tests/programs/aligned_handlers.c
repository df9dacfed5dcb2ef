// Signal handlers that keep vectors on their stack: at any depth of it, on a stack of their own,
// within each other, with and without SA_SIGINFO, and after a fault. What they are given is as it
// should be, and registers come back.
#define _GNU_SOURCE
#include <immintrin.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static int calls, wrong;
static char* page;

static void expect(int holds) { wrong += !holds; }

// The compiler believes that the stack is aligned, and uses MOVAPS.
__attribute__((noinline)) static void keep(__m128i value) {
  volatile __m128i kept = value;
  expect(((unsigned long)&kept & 15) == 0);
}

static void plain(int signal) {
  keep(_mm_set1_epi32(signal));
  expect(((unsigned long)__builtin_frame_address(0) & 15) == 0);
  ++calls;
  if (signal == SIGUSR1 && calls % 2 == 1) raise(SIGUSR2);
}

static void with_info(int signal, siginfo_t* info, void* context) {
  keep(_mm_set1_epi32(signal));
  expect(info->si_signo == signal);
  ucontext_t* at = context;
  expect(at->uc_mcontext.fpregs != 0 && ((unsigned long)at->uc_mcontext.fpregs & 15) == 0);
  if (signal == SIGSEGV) {
    expect(info->si_addr == page);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
  }
  ++calls;
}

static void on(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;
  sigaction(signal, &action, 0);
}

__attribute__((noinline)) static void deep(int bytes) {
  char* room = __builtin_alloca((unsigned long)bytes);
  memset(room, bytes, (unsigned long)bytes);
  double kept = bytes;
  __asm__ volatile("" : "+x"(kept));
  raise(SIGUSR1);
  raise(SIGWINCH);
  expect(kept == bytes && room[0] == (char)bytes);
}

int main(void) {
  signal(SIGUSR1, plain);
  signal(SIGUSR2, plain);
  on(SIGWINCH, with_info, 0);
  for (int bytes = 1; bytes < 4200; bytes += 37) deep(bytes);
  static char own[1 << 16];
  stack_t stack = {.ss_sp = own + 8, .ss_size = sizeof own - 8};
  sigaltstack(&stack, 0);
  on(SIGWINCH, with_info, SA_ONSTACK);
  on(SIGSEGV, with_info, SA_ONSTACK);
  deep(100);
  page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(volatile char*)page = 1;
  expect(calls > 200);
  return wrong != 0;
}
