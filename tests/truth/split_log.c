// Loaded into qemu beforehand (LD_PRELOAD): after a fork the child's log goes to a file of its own,
// named like the one of TAILTRACE_TEST_LOG with the child's number behind. qemu itself would let
// parent and child write into one.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char log_path[4096];

static void open_own_log(void) {
  char own[4200];
  snprintf(own, sizeof own, "%s.%d", log_path, getpid());
  DIR* folder = opendir("/proc/self/fd");
  if (folder == 0) return;
  for (struct dirent* entry; (entry = readdir(folder)) != 0;) {
    char link[4096] = "", name[300];
    snprintf(name, sizeof name, "/proc/self/fd/%s", entry->d_name);
    if (readlink(name, link, sizeof link - 1) < 0 || strcmp(link, log_path) != 0) continue;
    int fd = open(own, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup3(fd, atoi(entry->d_name), O_CLOEXEC);
    close(fd);
  }
  closedir(folder);
}

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("TAILTRACE_TEST_LOG");
  if (path == 0) return;
  snprintf(log_path, sizeof log_path, "%s", path);
  pthread_atfork(0, 0, open_own_log);
}
