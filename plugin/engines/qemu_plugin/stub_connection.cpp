#include "plugin/engines/qemu_plugin/stub_connection.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "plugin/engines/qemu_plugin/imports.h"

namespace tailtrace {
namespace {

constexpr rlim_t kHighNumber = 1000;
constexpr int kNone = -1;
constinit std::atomic<int> g_connection{kNone};

// The number below is that of the leash (qemu/leash.h).
int high_number() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 2) return 0;
  return static_cast<int>(std::min(limit.rlim_cur, kHighNumber) - 2);
}

// qemu's stub alone calls it, once; it leaves open what it listened at.
int accept_stub(int listener, sockaddr* address, socklen_t* size_bytes) {
  const int low = ::accept(listener, address, size_bytes);
  if (low < 0) return low;
  const int high = ::fcntl(low, F_DUPFD_CLOEXEC, high_number());
  if (high >= 0) ::close(low);
  ::close(listener);
  g_connection.store(high >= 0 ? high : low);
  return g_connection.load();
}

int refuse() {
  errno = EBADF;
  return -1;
}

bool is_connection(int fd) { return fd >= 0 && fd == g_connection.load(); }

int close_others(int fd) { return is_connection(fd) ? refuse() : ::close(fd); }

int copy_beside(int from, int to) { return is_connection(to) ? refuse() : ::dup2(from, to); }

int copy_beside_with(int from, int to, int flags) {
  return is_connection(to) ? refuse() : ::dup3(from, to, flags);
}

bool holds_connection(long first, long last) {
  const int kept = g_connection.load();
  return kept >= 0 && static_cast<unsigned>(first) <= static_cast<unsigned>(kept) &&
         static_cast<unsigned>(kept) <= static_cast<unsigned>(last);
}

long close_around(unsigned first, unsigned last, unsigned flags) {
  const auto kept = static_cast<unsigned>(g_connection.load());
  if (first < kept && ::syscall(SYS_close_range, first, kept - 1, flags) != 0) return -1;
  return kept < last ? ::syscall(SYS_close_range, kept + 1, last, flags) : 0;
}

// syscall() as the C library has it: with whatever may be an argument.
long call_system(long number, ...) {
  long a[6];
  std::va_list arguments;
  va_start(arguments, number);
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_close_range && holds_connection(a[0], a[1]))
    return close_around(static_cast<unsigned>(a[0]), static_cast<unsigned>(a[1]),
                        static_cast<unsigned>(a[2]));
  return ::syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // namespace

bool keep_stub_connection() {
  return replace_import("accept", reinterpret_cast<void*>(&accept_stub)) &&
         replace_import("close", reinterpret_cast<void*>(&close_others)) &&
         replace_import("dup2", reinterpret_cast<void*>(&copy_beside)) &&
         replace_import("dup3", reinterpret_cast<void*>(&copy_beside_with)) &&
         replace_import("syscall", reinterpret_cast<void*>(&call_system));
}

void give_up_stub_connection() { g_connection.store(kNone); }

}  // namespace tailtrace
