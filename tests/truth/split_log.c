// Loaded into qemu beforehand (LD_PRELOAD): after a fork the child's log goes to a file of its own,
// child.NNN in the folder of TAILTRACE_TEST_LOG, numbered by birth (a grandchild's is
// child.NNN.NNN). qemu itself would let parent and child write into one.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char log_folder[4096];
static char own_name[256] = "child";
static int forks;

static void count_fork(void) { ++forks; }

// Only the thread that forked lives on, and only its log is written to; the others' may follow.
static void open_own_log(void) {
  size_t length = strlen(own_name);
  snprintf(own_name + length, sizeof own_name - length, ".%03d", forks);
  forks = 0;
  char own[4400];
  snprintf(own, sizeof own, "%s/%s", log_folder, own_name);
  DIR* folder = opendir("/proc/self/fd");
  if (folder == 0) return;
  for (struct dirent* entry; (entry = readdir(folder)) != 0;) {
    char link[4096] = "", name[300];
    snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
    if (readlink(name, link, sizeof link - 1) < 0) continue;
    if (strncmp(link, log_folder, strlen(log_folder)) != 0) continue;
    int fd = open(own, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup3(fd, atoi(entry->d_name), O_CLOEXEC);
    close(fd);
  }
  closedir(folder);
}

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("TAILTRACE_TEST_LOG");
  if (path == 0) return;
  snprintf(log_folder, sizeof log_folder, "%s", path);
  pthread_atfork(count_fork, 0, open_own_log);
}
