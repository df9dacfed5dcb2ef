// Five children, one after the other, beside a parent that works on while each is made.
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void in_parent(int i) { __asm__ volatile("" ::"r"(i)); }
__attribute__((noinline)) void in_child(int i) { __asm__ volatile("" ::"r"(i)); }

int main(void) {
  for (int child = 0; child < 5; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (int i = 0; i < 10; ++i) in_child(i);
      _exit(0);
    }
    for (int i = 0; i < 10; ++i) in_parent(i);
    waitpid(pid, 0, 0);
  }
  return 0;
}
