// A child process that stands stopped whenever the test wants it to: it stops itself before each of
// its parts, and the test, which traces it, lets it run from one stop to the next.
//
// Threading: the thread that makes a Child is its tracer; only that thread may use it.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <functional>
#include <vector>

namespace tailtrace {

class Child {
 public:
  // Forks. The child runs the parts one after the other, with a stop before each and after the
  // last, then ends.
  explicit Child(std::vector<std::function<void()>> parts);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  // Lets it run to its next stop of its own; signals on the way are delivered. False: it ended.
  bool run();
  // Executes one instruction. False: it ended.
  bool step();
  user_regs_struct registers() const;

 private:
  bool resume(int request, int signal);

  pid_t pid_ = 0;
  bool ended_ = false;
};

}  // namespace tailtrace
