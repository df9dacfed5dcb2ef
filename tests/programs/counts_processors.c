// Counts the processors that it may run on: by itself, in a thread, and in a child.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sum;

__attribute__((noinline)) static void work(void) {
  for (int i = 0; i < 1000; ++i) sum += i;
}

static int processors(void) {
  cpu_set_t set;
  work();
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

static void* count(void* into) {
  *(int*)into = processors();
  return 0;
}

__attribute__((noinline)) static void done(void) { __asm__ volatile(""); }

int main(void) {
  int own = processors(), of_thread = 0, of_child = 0;
  pthread_t thread;
  pthread_create(&thread, 0, count, &of_thread);
  work();
  pthread_join(thread, 0);
  const pid_t child = fork();
  if (child == 0) _exit(processors());
  waitpid(child, &of_child, 0);
  printf("%d %d %d\n", own, of_thread, WEXITSTATUS(of_child));
  fflush(stdout);
  work();
  done();
  return 0;
}
