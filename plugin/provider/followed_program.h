// A program that is started and followed to its end, with all its threads; somebody is told when
// each of them begins and ends, while it stands there.
//
// Threading: one thread, which is the program's tracer.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

class FollowedProgram {
 public:
  // Starts a program, which stands at its first instruction then. `path` is an ELF file or a
  // script. Errors: kUsage: it cannot be executed; kSystem, kPermission: it cannot be traced.
  static Result<FollowedProgram> start(const std::string& path,
                                       const std::vector<std::string>& arguments);
  FollowedProgram(FollowedProgram&& other) noexcept;
  // What still runs is killed.
  ~FollowedProgram();

  pid_t pid() const { return pid_; }
  // Those that it has been seen to have; the first one stands where it was started or run to.
  const std::set<pid_t>& threads() const { return threads_; }
  // It is somebody else's from now on to follow it, in the same thread.
  pid_t release() { return threads_.clear(), pid_; }

  // Lets it run until its first thread comes to a place in its code, which is as before then.
  // Errors: kGone when it ends before that.
  Result<void> run_to(Address place);

  // What a function of the program returns that takes nothing and can be called where it stands, as
  // it was before then. Errors: kGone when it ends in there.
  Result<std::uint64_t> result_of(Address function);

  struct Watcher {
    std::function<void(ThreadId)> begins;         // a new thread, not the first one
    std::function<void(ThreadId, Address)> ends;  // stands there, with its memory
    // It executes another program, and stands at the first instruction of that, with no other
    // thread, as where it was started; empty: nobody cares.
    std::function<void(ThreadId)> executed = {};
    std::function<void()> meanwhile;  // called again and again while it runs; empty: nothing to do
    // Hardware breakpoints are set: a SIGTRAP of a debug register that the kernel could not tell
    // the owner of (breakpoints.h) is left out.
    bool drops_stray_traps = false;
    // A thread stands where a perf event stopped it (BreakpointSpec::stop); empty: none does.
    std::function<void(ThreadId)> stopped = {};
  };
  // Lets it run to its end; signals are delivered, and it stops and goes on as without us.
  // Returns its wait status. Errors: a thread could not be let go on, and the program was ended.
  Result<int> follow(const Watcher& watcher);

 private:
  explicit FollowedProgram(pid_t pid) : pid_(pid), threads_{pid} {}
  Result<void> take_stop(pid_t tid, int status, const Watcher& watcher);

  pid_t pid_;
  std::set<pid_t> threads_;
};

}  // namespace tailtrace
