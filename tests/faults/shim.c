/* Makes a system call of one program fail, as a full disk or a refused right would: preloaded,
 *
 *   FAULT_PROGRAM  the program's name; in others nothing is done
 *   FAULT          "NAME:NTH:ERRNO", and ":on" behind it for all calls from that one on
 *                  "clock:NTH:SECONDS": from that look at one on, clocks show so many more; fewer
 *                  only the one that can be set back
 *                  "late:NTH:0": from that look for a file on, whoever finds none learns of it only
 *                  when a child has ended
 *   FAULT_COUNTS   a file of kNames numbers of 8 bytes: how often each was called, then how many
 *                  were made to fail
 *
 * Counts are those of the program and of its forks together. Calls that the C library makes of
 * itself are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the order of names in driver.py. */
enum Name {
  kOpen,
  kRead,
  kWrite,
  kMmap,
  kIoctl,
  kPerfEventOpen,
  kPtrace,
  kPread,
  kMkdir,
  kRename,
  kFsync,
  kFtruncate,
  kSocket,
  kFork,
  kPipe,
  kSyncfs,
  kSeize,
  kClock,
  kLate,
  kNames
};
static const char* const kText[kNames] = {
    "open",  "read",   "write",  "mmap",  "ioctl",     "perf_event_open", "ptrace",
    "pread", "mkdir",  "rename", "fsync", "ftruncate", "socket",          "fork",
    "pipe",  "syncfs", "seize",  "clock", "late"};

static _Atomic long own_counts[kNames + 1];
static _Atomic long* counts = own_counts;
static int is_on, fault_name = -1, fault_errno, fault_stays;
static long fault_number;

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

static void read_fault(const char* text) {
  char name[32] = "", stays[8] = "";
  if (sscanf(text, "%31[^:]:%ld:%d:%7s", name, &fault_number, &fault_errno, stays) < 3) return;
  for (int i = 0; i < kNames; ++i)
    if (strcmp(name, kText[i]) == 0) fault_name = i;
  fault_stays = strcmp(stays, "on") == 0 || fault_name == kClock || fault_name == kLate;
}

__attribute__((constructor)) static void begin(void) {
  const char* program = getenv("FAULT_PROGRAM");
  const char* file = getenv("FAULT_COUNTS");
  if (program == NULL || strcmp(program, program_invocation_short_name) != 0) return;
  if (file != NULL) {
    int fd = open(file, O_RDWR | O_CLOEXEC);
    void* map = mmap(NULL, sizeof own_counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED) abort();
    close(fd);
    counts = map;
  }
  if (getenv("FAULT") != NULL) read_fault(getenv("FAULT"));
  is_on = 1;
}

/* Counts a call; whether it is to fail, with errno set. */
static int fails(enum Name name) {
  if (!is_on) return 0;
  long number = atomic_fetch_add(&counts[name], 1) + 1;
  if ((int)name != fault_name) return 0;
  if (number != fault_number && !(fault_stays && number > fault_number)) return 0;
  atomic_fetch_add(&counts[kNames], 1);
  errno = fault_errno;
  return 1;
}

static mode_t mode_of(int flags, va_list* rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(*rest, mode_t) : 0;
}

#define OPEN(function)                                    \
  int function(const char* path, int flags, ...) {        \
    va_list rest;                                         \
    va_start(rest, flags);                                \
    mode_t mode = mode_of(flags, &rest);                  \
    va_end(rest);                                         \
    if (fails(kOpen)) return -1;                          \
    int (*real)(const char*, int, ...) = next(#function); \
    return real(path, flags, mode);                       \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                       \
  int function(int folder, const char* path, int flags, ...) { \
    va_list rest;                                              \
    va_start(rest, flags);                                     \
    mode_t mode = mode_of(flags, &rest);                       \
    va_end(rest);                                              \
    if (fails(kOpen)) return -1;                               \
    int (*real)(int, const char*, int, ...) = next(#function); \
    return real(folder, path, flags, mode);                    \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(function)                                        \
  FILE* function(const char* path, const char* mode) {         \
    if (fails(kOpen)) return NULL;                             \
    FILE* (*real)(const char*, const char*) = next(#function); \
    return real(path, mode);                                   \
  }
FOPEN(fopen)
FOPEN(fopen64)

/* A call that answers -1 when it fails. */
#define CALL(name, type, function, parameters, arguments)         \
  type function parameters {                                      \
    if (fails(name)) return -1;                                   \
    type(*real) parameters = (type(*) parameters)next(#function); \
    return real arguments;                                        \
  }
CALL(kRead, ssize_t, read, (int fd, void* to, size_t size), (fd, to, size))

/* Disks are full; pipes and sockets are not. */
static int is_file(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

#define WRITE(function, parameters, arguments)                          \
  ssize_t function parameters {                                         \
    if (is_file(fd) && fails(kWrite)) return -1;                        \
    ssize_t(*real) parameters = (ssize_t(*) parameters)next(#function); \
    return real arguments;                                              \
  }
WRITE(write, (int fd, const void* from, size_t size), (fd, from, size))
WRITE(writev, (int fd, const struct iovec* parts, int count), (fd, parts, count))
WRITE(pwrite, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at))
WRITE(pwrite64, (int fd, const void* from, size_t size, off64_t at), (fd, from, size, at))
CALL(kRead, ssize_t, recv, (int fd, void* to, size_t size, int flags), (fd, to, size, flags))
CALL(kPread, ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at))
CALL(kPread, ssize_t, pread64, (int fd, void* to, size_t size, off64_t at), (fd, to, size, at))
CALL(kPread, ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec* to, unsigned long tos, const struct iovec* from,
      unsigned long froms, unsigned long flags),
     (pid, to, tos, from, froms, flags))
CALL(kMkdir, int, mkdir, (const char* path, mode_t mode), (path, mode))
CALL(kRename, int, rename, (const char* from, const char* to), (from, to))
CALL(kRename, int, renameat2,
     (int folder, const char* from, int other, const char* to, unsigned flags),
     (folder, from, other, to, flags))
CALL(kRename, int, linkat, (int folder, const char* from, int other, const char* to, int flags),
     (folder, from, other, to, flags))
CALL(kFsync, int, fsync, (int fd), (fd))
CALL(kSyncfs, int, syncfs, (int fd), (fd))
CALL(kFtruncate, int, ftruncate, (int fd, off_t size), (fd, size))
CALL(kFtruncate, int, ftruncate64, (int fd, off64_t size), (fd, size))
CALL(kSocket, int, socket, (int family, int type, int protocol), (family, type, protocol))
CALL(kSocket, int, socketpair, (int family, int type, int protocol, int fds[2]),
     (family, type, protocol, fds))
CALL(kFork, pid_t, fork, (void), ())
CALL(kPipe, int, pipe, (int fds[2]), (fds))
CALL(kPipe, int, pipe2, (int fds[2], int flags), (fds, flags))

CALL(kSocket, int, listen, (int fd, int waiting), (fd, waiting))
CALL(kSocket, int, accept, (int fd, struct sockaddr* from, socklen_t* size), (fd, from, size))
CALL(kSocket, int, accept4, (int fd, struct sockaddr* from, socklen_t* size, int flags),
     (fd, from, size, flags))
CALL(kSocket, int, connect, (int fd, const struct sockaddr* to, socklen_t size), (fd, to, size))
CALL(kPipe, int, eventfd, (unsigned first, int flags), (first, flags))
CALL(kPipe, int, signalfd, (int fd, const sigset_t* set, int flags), (fd, set, flags))
CALL(kPipe, int, memfd_create, (const char* name, unsigned flags), (name, flags))

/* Calls that answer with the error. */
int posix_fallocate(int fd, off_t at, off_t size) {
  if (fails(kFtruncate)) return errno;
  int (*real)(int, off_t, off_t) = next("posix_fallocate");
  return real(fd, at, size);
}

#define SPAWN(function)                                                                           \
  int function(pid_t* pid, const char* path, const posix_spawn_file_actions_t* files,             \
               const posix_spawnattr_t* attributes, char* const words[], char* const values[]) {  \
    if (fails(kFork)) return errno;                                                               \
    int (*real)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, \
                char* const[], char* const[]) = next(#function);                                  \
    return real(pid, path, files, attributes, words, values);                                     \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

char* mkdtemp(char* pattern) {
  if (fails(kMkdir)) return NULL;
  char* (*real)(char*) = next("mkdtemp");
  return real(pattern);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fails(kMmap)) return MAP_FAILED;
  void* (*real)(void*, size_t, int, int, int, off_t) = next("mmap");
  return real(at, size, protection, flags, fd, offset);
}

int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (fails(kIoctl)) return -1;
  int (*real)(int, unsigned long, ...) = next("ioctl");
  return real(fd, request, argument);
}

long ptrace(enum __ptrace_request request, ...) {
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void* address = va_arg(rest, void*);
  void* data = va_arg(rest, void*);
  va_end(rest);
  if (fails(kPtrace)) return -1;
  if (request == PTRACE_SEIZE && fails(kSeize)) return -1;
  long (*real)(enum __ptrace_request, ...) = next("ptrace");
  return real(request, pid, address, data);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  int (*real)(clockid_t, struct timespec*) = next("clock_gettime");
  int result = real(clock, now), before = errno;
  if ((clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && fails(kClock) &&
      (clock == CLOCK_REALTIME || fault_errno > 0))
    now->tv_sec += fault_errno;
  errno = before;
  return result;
}

int access(const char* path, int mode) {
  int (*real)(const char*, int) = next("access");
  int result = real(path, mode), before = errno;
  siginfo_t child;
  if (result != 0 && before == ENOENT && fails(kLate)) waitid(P_ALL, 0, &child, WEXITED | WNOWAIT);
  errno = before;
  return result;
}

long syscall(long number, ...) {
  long part[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; ++i) part[i] = va_arg(rest, long);
  va_end(rest);
  if (number == SYS_perf_event_open && fails(kPerfEventOpen)) return -1;
  long (*real)(long, ...) = next("syscall");
  return real(number, part[0], part[1], part[2], part[3], part[4], part[5]);
}
