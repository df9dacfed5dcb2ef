/* Who writes a variable, and how often, without a stop: compiled against the installed library.
 * Works on every machine where perf events are permitted; no tracing hardware is needed.
 *   cc hits.c $(pkg-config --cflags --libs tailtrace) && ./a.out */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <tailtrace/tailtrace.h>
#include <unistd.h>

static volatile long counter;

__attribute__((noinline)) static void count(long times) {
  for (long i = 0; i < times; ++i) counter = i;
}

static int give_up(tt_error* error) {
  int code = tt_error_code(error);
  fprintf(stderr, "error: %s\n  why:  %s\n", tt_error_what(error), tt_error_why(error));
  tt_error_free(error);
  return code;
}

/* A child of the same code stands at the same addresses. It counts twice, and stands before each.
 */
static pid_t start_child(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    count(1000);
    raise(SIGSTOP);
    count(1);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, 0, 0);
  return child;
}

/* Some virtual machines forget which register was hit; the same hit comes again. */
static void run_to_stop(pid_t child) {
  int status = 0;
  do {
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, &status, 0);
  } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

static int log_writes(pid_t child, const tt_place* place) {
  tt_error* error = 0;
  tt_watch* watch = tt_watch_new(child, 0, &error);
  if (!watch) return give_up(error);
  int number = tt_watch_add(watch, place, &error);
  if (number < 0) return give_up(error);
  run_to_stop(child);
  if (tt_watch_read(watch, number, 3, &error) < 0) return give_up(error);
  unsigned long long writes = tt_watch_count(watch);
  printf("%llu writes, the last of them:\n", writes);
  tt_hit hit = {.size_bytes = sizeof hit};
  for (size_t i = 0; tt_watch_hit(watch, i, &hit) == 0; ++i)
    printf("  %llu  at %#llx\n", (unsigned long long)hit.number, (unsigned long long)hit.address);
  tt_watch_free(watch);
  return writes == 1000 ? 0 : 1;
}

static int wait_for_write(pid_t child, const tt_place* place) {
  tt_error* error = 0;
  tt_alarm* alarm = tt_alarm_new(child, place, &error);
  if (!alarm) return give_up(error);
  run_to_stop(child);
  struct pollfd ready = {.fd = tt_alarm_fd(alarm), .events = POLLIN};
  if (poll(&ready, 1, -1) != 1) return 1;
  long long hits = tt_alarm_wait(alarm, -1, &error);
  if (hits < 0) return give_up(error);
  printf("woken by %lld write\n", hits);
  tt_alarm_free(alarm);
  return hits == 1 ? 0 : 1;
}

int main(void) {
  tt_place place = {.size_bytes = sizeof place,
                    .address = (uint64_t)(uintptr_t)&counter,
                    .on = TT_WRITE,
                    .width = sizeof counter,
                    .name = "the counter"};
  pid_t child = start_child();
  int status = log_writes(child, &place);
  if (status == 0) status = wait_for_write(child, &place);
  kill(child, SIGKILL);
  return status;
}
