/* What did a child of ours do last? Compiled against the installed library:
 *   cc example.c $(pkg-config --cflags --libs tailtrace) && ./a.out */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <tailtrace/tailtrace.h>
#include <unistd.h>

static void work(void) {
  for (volatile int i = 0; i < 100; ++i) {
  }
}

static int give_up(tt_error* error) {
  int code = tt_error_code(error);
  fprintf(stderr, "error: %s\n  why:  %s\n", tt_error_what(error), tt_error_why(error));
  tt_error_free(error);
  return code;
}

int main(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    work();
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, 0, 0);
  tt_error* error = 0;
  tt_provider* provider = tt_provider_new(0, &error);
  if (!provider || tt_start_thread(provider, child, child, &error) != 0) {
    kill(child, SIGKILL);
    tt_provider_free(provider);
    return give_up(error);
  }
  ptrace(PTRACE_CONT, child, 0, 0);
  waitpid(child, 0, 0);
  tt_snapshot* snapshot = tt_snapshot_thread(provider, child, child, 0, 0, &error);
  kill(child, SIGKILL);
  if (!snapshot) return give_up(error);
  uint64_t size = tt_snapshot_size(snapshot);
  printf("%s: %llu instructions, the last of them:\n", tt_snapshot_hardware(snapshot),
         (unsigned long long)size);
  for (uint64_t number = size > 5 ? size - 4 : 1; number <= size; ++number) {
    tt_item item = {.size_bytes = sizeof item};
    char text[128];
    tt_snapshot_item(snapshot, number, &item);
    tt_snapshot_text(snapshot, number, text, sizeof text);
    printf("  %llu  %#llx  %s\n", (unsigned long long)item.number, (unsigned long long)item.address,
           text);
  }
  tt_snapshot_free(snapshot);
  tt_provider_free(provider);
  return 0;
}
