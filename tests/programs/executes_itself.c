// Executes its own file again, by the name that its argument stands for.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

__attribute__((noipa)) int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += i % 3;
  return sum;
}

int main(int argc, char** argv) {
  const char* by = argc > 1 ? argv[1] : "";
  char* again[] = {argv[0], NULL};
  if (by[0] == 0) return work(100) % 50;
  int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (strcmp(by, "descriptor") == 0) {
    fexecve(program, again, environ);
  } else if (strcmp(by, "memory") == 0) {
    int memory = memfd_create("program", MFD_CLOEXEC);
    while (sendfile(memory, program, NULL, 1 << 16) > 0) continue;
    char* from_memory[] = {argv[0], "self", NULL};
    fexecve(memory, from_memory, environ);
  } else if (strcmp(by, "number") == 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getpid());
    execv(path, again);
  } else {
    execv("/proc/self/exe", again);
  }
  return 2;
}
