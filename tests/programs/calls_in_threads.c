// Four threads that make one system call after the other.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void* make_calls(void* unused) {
  for (int i = 0; i < 2000; ++i) syscall(SYS_getppid);
  return unused;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, make_calls, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  puts("done");
  return 0;
}
