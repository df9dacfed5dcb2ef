// Closes all descriptors but the standard ones in each way there is, as daemons do, and puts
// others in their places; its exit status is 0 if none of it met a descriptor that was not its own.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMost = 1100, kLow = 16, kNothing = 3 };

__attribute__((noinline)) static void closed(const char* how) { __asm__ volatile("" : : "r"(how)); }

static void close_one_by_one(void) {
  for (int fd = 3; fd < kMost; ++fd) close(fd);
}

static int is_socket_below(int end) {
  struct stat info;
  for (int fd = 3; fd < end; ++fd)
    if (fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode)) return 1;
  return 0;
}

// What it has open itself takes the first numbers.
static int fill_low(void) {
  int wrong = open("/dev/null", O_RDWR) != kNothing;
  for (int fd = 4; fd < kLow; ++fd) wrong |= dup2(kNothing, fd) != fd;
  return wrong | (dup3(kNothing, kLow, O_CLOEXEC) != kLow);
}

int main(void) {
  int wrong = is_socket_below(kLow);
  close_one_by_one();
  closed("one by one");
  wrong |= fill_low();
  closed("replaced");
  for (int fd = kLow + 1; fd < kMost; ++fd) dup2(kNothing, fd);
  closed("all replaced");
  wrong |= syscall(SYS_close_range, 3, ~0u, 0) != 0;
  closed("as a range");
  wrong |= fill_low();
  int child = fork(), status;
  if (child == 0) {
    close_one_by_one();
    _exit(fill_low());
  }
  wrong |= waitpid(child, &status, 0) != child || status != 0;
  return wrong;
}
