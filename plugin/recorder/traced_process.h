// TracedProcess: a running process held by ptrace(2), all its threads, without anything written
// into it: it may be let go of at any time. Threads stand and run one by one; stop() makes all
// stand.
//
// Threading: one thread, which is the process's tracer.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

class TracedProcess {
 public:
  // Takes hold of a running process; its threads run. Errors: kGone, kPermission, kSystem.
  static Result<TracedProcess> attach(pid_t pid);
  // Of a process that this thread traces already, with PTRACE_SEIZE, and whose one thread stands.
  static TracedProcess adopt(pid_t pid);

  TracedProcess(TracedProcess&&) = default;

  pid_t pid() const { return pid_; }
  // None when it has ended.
  bool has_threads() const { return !threads_.empty(); }
  std::vector<pid_t> threads() const;

  // What happened to a thread, which stands there now, unless it is gone.
  struct Event {
    enum class Kind {
      kBegins,    // a thread stands at its beginning
      kSignal,    // `signal` comes to it when it is resumed with it
      kTrap,      // a step was made, or a debug register matched
      kExits,     // is about to end, with `status`, a wait status; memory is still there
      kReplaced,  // another program, which stands at its beginning; other threads are gone
      kGone,      // ended, with `status`
      kNothing,   // stands, for no reason
      kStopped,   // with the others, as by SIGSTOP
    };
    Kind kind = Kind::kNothing;
    pid_t tid = 0;
    int signal = 0;
    int status = 0;
  };
  // The next one, if there is any. SIGCHLD tells that there may be.
  std::optional<Event> next();

  // A thread that stands, and is not going to be told of by next(), runs, or makes a step; with a
  // signal.
  void resume(pid_t tid, int signal, bool step);
  // A thread that was kStopped stays so until somebody sends SIGCONT.
  void listen(pid_t tid);

  // All threads stand; what happens to them meanwhile is told by next().
  void stop();
  bool stands(pid_t tid) const;
  bool is_to_be_told(pid_t tid) const;
  // A thread that stands for good: it is ending.
  bool is_ending(pid_t tid) const;

  // Lets go of it; `signals` come to threads then. It goes on, as if nobody had been here.
  void detach(const std::map<pid_t, int>& signals);

  // Of a thread that stands.
  std::optional<user_regs_struct> registers(pid_t tid) const;
  std::optional<user_fpregs_struct> vector_registers(pid_t tid) const;
  Address pc(pid_t tid) const;

 private:
  struct Thread {
    bool stands = false;
    bool told = false;    // its beginning
    bool ending = false;  // next it is gone
    bool listens = false;
  };
  struct Stop {
    pid_t tid;
    int status;
  };

  explicit TracedProcess(pid_t pid) : pid_(pid) {}
  Result<void> seize_all();
  // A thread of the process, and not one that it made as threads are made.
  bool is_ours(pid_t tid) const;
  void note(Stop stop);
  std::optional<Event> tell(Stop stop);
  Event::Kind kind_of(Stop stop);
  void wait_for(pid_t tid);
  bool is_about_to_end(pid_t tid) const;
  void let_end(pid_t tid);
  // Until a thread that runs stands again, or is gone. When the process is killed meanwhile, its
  // threads are let go of as they come to their ends: a leader's is told behind all others'.
  void wait_letting_end(pid_t tid);
  // A trap that is on its way to a thread would end the process once it is let go of.
  void take_coming_traps();

  pid_t pid_;
  std::map<pid_t, Thread> threads_;
  std::deque<Stop> untold_;
};

}  // namespace tailtrace
