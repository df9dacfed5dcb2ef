// A thread that is not the first executes the program anew while others work; it ends with 42 then.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int done;

static void* work(void* unused) {
  for (;;) ++done;
  return unused;
}

static void* execute(void* program) {
  execl(program, program, "again", (char*)NULL);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t worker, executer;
  if (argc > 1) return 42;
  pthread_create(&worker, NULL, work, NULL);
  pthread_create(&executer, NULL, execute, argv[0]);
  for (;;) ++done;
}
