#include "plugin/engines/qemu/leash.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace tailtrace {
namespace {

// Programs count on low numbers for what they open themselves.
constexpr rlim_t kHighNumber = 1000;

int highest_number() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min(limit.rlim_cur, kHighNumber) - 1);
}

}  // namespace

Result<Leash> Leash::make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(system_error("cannot make a pipe"));
  Leash leash;
  leash.writer_ = UniqueFd(ends[1]);
  UniqueFd low(ends[0]);
  leash.reader_ = UniqueFd(::fcntl(low.get(), F_DUPFD_CLOEXEC, highest_number()));
  // The number may be taken.
  if (!leash.reader_) leash.reader_ = std::move(low);
  return leash;
}

Result<void> Leash::hold(int pid) {
  int fd = reader_.get();
  if (::fcntl(fd, F_SETOWN, pid) != 0 || ::fcntl(fd, F_SETSIG, SIGKILL) != 0 ||
      ::fcntl(fd, F_SETFL, O_ASYNC) != 0)
    return fail(system_error("cannot bind the program to this process"));
  return {};
}

void Leash::let_go() {
  if (reader_) ::fcntl(reader_.get(), F_SETFL, 0);
}

}  // namespace tailtrace
