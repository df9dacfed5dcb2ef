// A child that executes another program, a child that just works, and one whose exec fails.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noipa)) int child_work(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += i % 3;
  return sum;
}

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

int main(int argc, char** argv) {
  const char* program = argc > 1 ? argv[1] : "/bin/true";
  pid_t child = vfork();
  if (child == 0) {
    execl(program, program, "from-vfork", (char*)0);
    _exit(9);
  }
  int sum = wait_for(child);
  child = fork();
  if (child == 0) _exit(child_work(100) % 50);
  sum += wait_for(child);
  child = vfork();
  if (child == 0) {
    execl("/nowhere/at/all", "nothing", (char*)0);
    _exit(7);
  }
  sum += wait_for(child);
  printf("%d\n", sum);
  return 0;
}
