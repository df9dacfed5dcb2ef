// Two children that work for themselves, one after the other, and a parent that waits for both.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noipa)) static unsigned work(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += i % 3 == 0 ? i : sum / 2;
  return sum;
}

int main(void) {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(work(500) == 0);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  return work(300) == 0;
}
