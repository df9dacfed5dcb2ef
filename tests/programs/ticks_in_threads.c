// Four threads that come to `visit` again and again while a timer interrupts one of them.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void tick(int signal) {
  (void)signal;
  ++ticks;
}

__attribute__((noipa)) void visit(void) { __asm__ volatile(""); }

static void* work(void* unused) {
  for (int i = 0; i < 20; ++i) visit();
  return unused;
}

int main(void) {
  pthread_t threads[4];
  struct itimerval often = {{0, 2000}, {0, 2000}};
  signal(SIGALRM, tick);
  setitimer(ITIMER_REAL, &often, NULL);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  while (ticks < 3) continue;
  puts("done");
  return 0;
}
