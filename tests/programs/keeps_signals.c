// A child that makes a thread, and a thread that has all signals blocked when it is made, finds
// none waiting, and unblocks them then.
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int looked;

static void* rest(void* unused) { return unused; }

static void* look(void* result) {
  sigset_t waiting;
  sigpending(&waiting);
  *(int*)result = sigismember(&waiting, SIGTRAP);
  looked = 1;
  sigfillset(&waiting);
  pthread_sigmask(SIG_UNBLOCK, &waiting, NULL);
  looked = 2;
  return NULL;
}

static int run(void* (*what)(void*)) {
  pthread_t thread;
  int result = 0;
  if (pthread_create(&thread, NULL, what, &result) != 0) return 1;
  pthread_join(thread, NULL);
  return result;
}

int main(void) {
  const pid_t child = fork();
  if (child == 0) _exit(run(rest));
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 2;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  return run(look);
}
