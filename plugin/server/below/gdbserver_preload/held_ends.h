// HeldEnds: in gdbserver, keeps the end of a thread that stands from it while it stops the others.
//
// In all-stop it tells of a thread that stopped when it has stopped all others. If somebody kills
// the program meanwhile, it may learn first that this thread has ended: then it tells of a thread
// that it knows no more, and crashes. In here a thread that stands ends when one is resumed; not
// when its debugger asks for the next stop, which may be one that gdbserver has known for long.
//
// Threading: the thread that traces.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tailtrace {

class HeldEnds {
 public:
  using Waitpid = pid_t (*)(pid_t, int*, int);

  explicit HeldEnds(Waitpid waitpid) : waitpid_(waitpid) {}

  // As waitpid.
  pid_t wait(pid_t wanted, int* status, int options) {
    End seen{};
    do {
      if (take(wanted, seen)) break;
      seen.tid = waitpid_(wanted, &seen.status, options);
    } while (is_held(wanted, seen, options));
    if (seen.tid > 0 && status != nullptr) *status = seen.status;
    return seen.tid;
  }

  // gdbserver resumes a thread. False if that has ended, which it is told next.
  bool resume(pid_t tid) {
    holds_ = false;
    standing_.erase(tid);
    return std::ranges::find(ended_, tid, &End::tid) == ended_.end();
  }

  // gdbserver waits, in all-stop for its debugger alone.
  void before_poll(unsigned long polled) {
    in_all_stop_ = polled == 1;
    holds_ = in_all_stop_;
  }

 private:
  struct End {
    pid_t tid;
    int status;
  };

  bool take(pid_t wanted, End& taken) {
    const auto is_wanted = [&](const End& end) {
      return wanted == end.tid || (wanted == -1 && !holds_);
    };
    const auto found = std::ranges::find_if(ended_, is_wanted);
    if (found == ended_.end()) return false;
    taken = *found;
    ended_.erase(found);
    return true;
  }

  // Notes whether a thread stands; keeps its end if that is to be held.
  bool is_held(pid_t wanted, const End& seen, int options) {
    if (seen.tid <= 0) return false;
    if (WIFSTOPPED(seen.status)) {
      holds_ = in_all_stop_;
      standing_.insert(seen.tid);
      return false;
    }
    const bool stood = standing_.erase(seen.tid) != 0;
    if (!stood || !holds_ || wanted != -1 || (options & WNOHANG) == 0) return false;
    ended_.push_back(seen);
    return true;
  }

  Waitpid waitpid_;
  bool in_all_stop_ = true;
  bool holds_ = false;  // in all-stop, nothing was resumed since the last stop or poll
  std::set<pid_t> standing_;
  std::vector<End> ended_;
};

}  // namespace tailtrace
