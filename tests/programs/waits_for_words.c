// Does what it reads, a word a line, in a thread of its own beside one that waits: "crash",
// "abort", "handled" (a fault that it handles), "call", "write", "exit". Says "did WORD" when it
// has.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long watched __attribute__((aligned(8)));
static int* volatile nothing;
static sigjmp_buf way_out;

static void out(int signal) {
  (void)signal;
  siglongjmp(way_out, 1);
}

__attribute__((noipa)) void deeper(int levels) {
  if (levels > 0)
    deeper(levels - 1);
  else
    *nothing = 1;
  __asm__ volatile("");
}

__attribute__((noipa)) void wanted_function(void) { __asm__ volatile(""); }

static void handled_fault(void) {
  signal(SIGSEGV, out);
  if (sigsetjmp(way_out, 1) == 0) deeper(1);
  signal(SIGSEGV, SIG_DFL);
}

static void* waits(void* argument) {
  for (;;) pause();
  return argument;
}

int main(void) {
  char word[64];
  pthread_t thread;
  setvbuf(stdout, NULL, _IOLBF, 0);
  pthread_create(&thread, NULL, waits, NULL);
  printf("ready %p\n", (void*)&watched);
  while (fgets(word, sizeof word, stdin) != NULL) {
    word[strcspn(word, "\n")] = 0;
    if (strcmp(word, "crash") == 0) deeper(3);
    if (strcmp(word, "abort") == 0) abort();
    if (strcmp(word, "handled") == 0) handled_fault();
    if (strcmp(word, "call") == 0) wanted_function();
    if (strcmp(word, "write") == 0) watched = 42;
    if (strcmp(word, "exit") == 0) exit(3);
    printf("did %s\n", word);
  }
  return 0;
}
