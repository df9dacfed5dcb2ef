// Threads that count the signals each of them gets while all of them work, and a handler that
// returns to an instruction behind a byte that a breakpoint would be.
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

enum { kThreads = 3, kSignals = 5 };

static volatile int counted[kThreads], ready, done;
static __thread int number;
static char* page;

static void count(int signal) {
  (void)signal;
  ++counted[number];
}

static void allow(int signal) {
  (void)signal;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

__attribute__((noipa)) static void store(char* to) {
  __asm__ volatile("mov %%rcx, %%r12\n\tmovb $1, (%0)" : : "r"(to) : "r12", "memory");
}

static void* work(void* mine) {
  number = *(int*)mine;
  __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
  while (!done) continue;
  return NULL;
}

int main(void) {
  pthread_t threads[kThreads];
  int numbers[kThreads];
  signal(SIGRTMIN + 5, count);
  signal(SIGSEGV, allow);
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  store(page);
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, work, &numbers[i]);
  }
  while (ready < kThreads) continue;
  for (int sent = 0; sent < kSignals; ++sent)
    for (int i = 0; i < kThreads; ++i) pthread_kill(threads[i], SIGRTMIN + 5);
  for (volatile int wait = 0; wait < 50; ++wait) continue;
  done = 1;
  int wrong = *page != 1;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    wrong += counted[i] != kSignals;
  }
  return wrong;
}
