/* A process by CPU, and a thread without loss, through the library. Exit status 0, or that of the
 * error where the hardware is not there. The argument is a file that is not there yet. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <tailtrace/tailtrace.h>
#include <unistd.h>

/* Stands until it is let go, and again when it has done something. */
static pid_t start_child(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (volatile int i = 0; i < 1000; ++i) {
    }
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, 0, 0);
  return child;
}

static void let_work(pid_t child) {
  ptrace(PTRACE_CONT, child, 0, 0);
  waitpid(child, 0, 0);
}

static int give_up(tt_error* error) {
  int code = tt_error_code(error);
  fprintf(stderr, "error: %s\n  why:  %s\n", tt_error_what(error), tt_error_why(error));
  tt_error_free(error);
  return code;
}

static int by_cpu(pid_t child) {
  tt_error* error = 0;
  tt_options options = {.size_bytes = sizeof options, .hardware = "pt", .buffer_bytes = 1 << 20};
  tt_process* process = tt_process_record(&options, child, 0, &error);
  if (!process) return give_up(error);
  let_work(child);
  int count = tt_process_snapshot(process, 0, &error);
  if (count < 0) return give_up(error);
  tt_snapshot* first = tt_process_thread(process, 0);
  if (!first || tt_snapshot_pid(first) != child || tt_snapshot_tid(first) != child) return 1;
  if (tt_process_thread(process, (size_t)count)) return 1;
  unsigned long long size = tt_snapshot_size(first);
  printf("by CPU: %llu instructions\n", size);
  tt_snapshot_free(first);
  tt_process_free(process);
  return size > 3000 ? 0 : 1;
}

static int without_loss(pid_t child, const char* path) {
  tt_error* error = 0;
  tt_options options = {.size_bytes = sizeof options, .hardware = "pt", .buffer_bytes = 1 << 20};
  tt_lossless* lossless = tt_lossless_start(&options, child, child, path, &error);
  if (!lossless) return give_up(error);
  let_work(child);
  if (tt_lossless_drain(lossless, 0, &error) < 0) return give_up(error);
  if (tt_lossless_trouble(lossless)) return 1;
  tt_snapshot* snapshot = tt_lossless_snapshot(lossless, 0, 0, &error);
  if (!snapshot) return give_up(error);
  unsigned long long size = tt_snapshot_size(snapshot);
  printf("without loss: %llu instructions\n", size);
  tt_snapshot_free(snapshot);
  tt_lossless_free(lossless);
  return size > 3000 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pid_t child = start_child();
  int status = by_cpu(child);
  kill(child, SIGKILL);
  if (status != 0) return status;
  child = start_child();
  status = without_loss(child, argv[1]);
  kill(child, SIGKILL);
  return status;
}
