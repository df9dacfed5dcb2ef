// A program of two threads makes a process as clone(2) does for threads, whose end no SIGCHLD
// tells, and which executes another program; then it aborts.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int child_status = -1;

static void* waits(void* unused) {
  for (;;) pause();
  return unused;
}

static int execute(void* program) { return execl(program, program, "child", (char*)NULL); }

int main(int count, char** words) {
  static char stack[1 << 16] __attribute__((aligned(16)));
  pthread_t thread;
  int status = 0;
  if (count > 1) return 0;
  if (pthread_create(&thread, NULL, waits, NULL) != 0) return 1;
  const pid_t child = clone(execute, stack + sizeof stack, 0, words[0]);
  if (waitpid(child, &status, __WALL) != child) return 2;
  child_status = status;
  if (status == 0) abort();
  return 3;
}
