/* What can be chosen of Intel PT, through the library: settings, functions, stretches between two
 * places, the kernel's code. Exit status 0, or that of the error where the hardware is not there.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <tailtrace/tailtrace.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline, noclone))

extern const char __executable_start[]; /* the linker's */

static volatile int sink;
static NOT_INLINED void part(void) {
  for (int i = 0; i < 100; ++i) sink = sink + i;
}
static NOT_INLINED void begin_here(void) { sink = 1; }
static NOT_INLINED void end_here(void) { sink = 2; }

/* Stands until it is let go, and again when it has done something. */
static pid_t start_child(void) {
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    for (int i = 0; i < 10; ++i) part();
    begin_here();
    part();
    end_here();
    for (int i = 0; i < 10; ++i) part();
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(child, 0, 0);
  return child;
}

/* The child's history under some options; null when they are refused. */
static tt_snapshot* record(tt_options options, tt_error** error) {
  options.size_bytes = sizeof options;
  options.hardware = "pt";
  pid_t child = start_child();
  tt_provider* provider = tt_provider_new(&options, error);
  tt_snapshot* taken = 0;
  if (provider && tt_start_process(provider, child, error) == 0) {
    ptrace(PTRACE_CONT, child, 0, 0);
    waitpid(child, 0, 0);
    if (tt_snapshot_process(provider, child, 0, error) == 1)
      taken = tt_provider_thread(provider, 0);
  }
  tt_provider_free(provider);
  kill(child, SIGKILL);
  return taken;
}

static uint64_t address_of(tt_snapshot* snapshot, uint64_t number) {
  tt_item item = {.size_bytes = sizeof item};
  return tt_snapshot_item(snapshot, number, &item) == 0 ? item.address : 0;
}

static int give_up(tt_error* error) {
  int code = tt_error_code(error);
  fprintf(stderr, "error: %s\n  why:  %s\n", tt_error_what(error), tt_error_why(error));
  tt_error_free(error);
  return code;
}

static int told(const char* choice, tt_snapshot* snapshot, int right) {
  printf("%s: %llu instructions%s\n", choice, (unsigned long long)tt_snapshot_size(snapshot),
         right ? "" : ", which is wrong");
  tt_snapshot_free(snapshot);
  return right ? 0 : 1;
}

static int with_settings(void) {
  tt_error* error = 0;
  tt_snapshot* all = record((tt_options){.settings = "psb_period=0,noretcomp,tsc=0"}, &error);
  if (!all) return give_up(error);
  return told("settings", all,
              tt_snapshot_size(all) > 10000 && strcmp(tt_snapshot_name(all), "choices") == 0);
}

static int wrong_setting(void) {
  tt_error* error = 0;
  if (record((tt_options){.settings = "nonsense"}, &error)) return 1;
  int code = tt_error_code(error);
  tt_error_free(error);
  return code == 2 ? 0 : 1;
}

static int one_function(void) {
  char path[512] = "", filter[600];
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
  snprintf(filter, sizeof filter, "filter %#llx/16@%s",
           (unsigned long long)((const char*)begin_here - __executable_start), path);
  tt_error* error = 0;
  tt_snapshot* inside = record((tt_options){.filters = filter}, &error);
  if (!inside) return give_up(error);
  return told("filter", inside,
              tt_snapshot_size(inside) < 20 && address_of(inside, 1) == (uintptr_t)begin_here);
}

static int between_places(void) {
  tt_error* error = 0;
  tt_snapshot* between = record(
      (tt_options){.resume_at = (uintptr_t)begin_here, .pause_at = (uintptr_t)end_here}, &error);
  if (!between) {
    int is_old = strstr(tt_error_why(error), "AUX pause and resume") != 0;
    puts(is_old ? "between: not with this kernel" : tt_error_why(error));
    tt_error_free(error);
    return is_old ? 0 : 1;
  }
  uint64_t size = tt_snapshot_size(between);
  return told("between", between,
              size > 300 && size < 3000 && address_of(between, 1) == (uintptr_t)begin_here);
}

static int with_kernel(void) {
  tt_error* error = 0;
  tt_snapshot* both = record((tt_options){.kernel = 1}, &error);
  if (both) return told("kernel", both, tt_snapshot_size(both) > 10000);
  printf("kernel: %s\n", tt_error_why(error));
  int is_permission = tt_error_code(error) == 4;
  tt_error_free(error);
  return is_permission ? 0 : 1;
}

int main(void) {
  int (*const choices[])(void) = {with_settings, wrong_setting, one_function, between_places,
                                  with_kernel};
  for (unsigned i = 0; i < sizeof choices / sizeof choices[0]; ++i) {
    int status = choices[i]();
    if (status != 0) return status;
  }
  return 0;
}
