// Leash: ends a process when the one that started it is gone, however that came to be.
//
// It is a pipe on which nothing is ever written. The process inherits the reading end, the starter
// alone has the writing end; when that closes, the kernel sends the process SIGKILL (fcntl(2),
// F_SETSIG). So nothing in the process has to look after it, it holds across execve(), and unlike
// prctl(PR_SET_PDEATHSIG) it does not care which of the starter's threads ends. The children of the
// process are free, as they are when gdbserver is killed, and so is a process that closes
// descriptors it does not know.
//
// Threading: one thread at a time.
#pragma once

#include "decoder/base/file.h"
#include "decoder/base/result.h"

namespace tailtrace {

class Leash {
 public:
  Leash() = default;
  // Errors: kSystem.
  static Result<Leash> make();

  // What the process has to inherit, under the same number; closed at execve() by default.
  int inherited_fd() const { return reader_.get(); }
  // From now on it holds the process, which has inherited the descriptor. Errors: kSystem.
  Result<void> hold(int pid);
  // The process goes on when we are gone.
  void let_go();

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

}  // namespace tailtrace
