#include "plugin/server/below/new_threads.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "plugin/engines/own_files.h"
#include "plugin/server/below/gdbserver_preload/new_threads.h"

namespace tailtrace {

Result<NewThreads> NewThreads::open() {
  auto library = find_own_file("libtailtrace_gdbserver.so");
  if (!library) return fail(std::move(library.error()));
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return fail(system_error("cannot make a socket pair"));
  auto row = StepRow::make();
  if (!row) return fail(std::move(row.error()));
  NewThreads made;
  made.row_ = std::move(*row);
  made.ours_ = UniqueFd(pair[0]);
  made.its_ = UniqueFd(pair[1]);
  made.library_ = std::move(*library);
  return made;
}

// By a descriptor, for there is no way to write a path with a blank or a colon. The library closes
// it, and has the other one closed where a program is executed.
void NewThreads::become_its(int first_free, bool nothing_else) const {
  const int library = ::open(library_.c_str(), O_RDONLY);
  std::string paths = fmt::format("/proc/self/fd/{}", ::fcntl(library, F_DUPFD, first_free));
  ::close(library);
  if (const char* others = std::getenv("LD_PRELOAD")) paths.append(":").append(others);
  ::setenv("LD_PRELOAD", paths.c_str(), 1);
  std::string line = std::to_string(::fcntl(its_.get(), F_DUPFD, first_free));
  if (nothing_else) line += kNothingElse;
  ::setenv(kNewThreadsVariable, line.c_str(), 1);
  row_.become_its(first_free);
}

void NewThreads::add_poll(std::vector<pollfd>& polled) const {
  if (ours_) polled.push_back({ours_.get(), POLLIN, 0});
}

void NewThreads::receive() {
  std::int32_t tid = 0;
  ssize_t got = -1;
  while (ours_ && (got = ::recv(ours_.get(), &tid, sizeof tid, MSG_DONTWAIT)) == sizeof tid) {
    if (meet_) meet_(tid);
    const char noted = 0;
    (void)::send(ours_.get(), &noted, sizeof noted, MSG_NOSIGNAL);
  }
  if (got == 0) close();
}

}  // namespace tailtrace
