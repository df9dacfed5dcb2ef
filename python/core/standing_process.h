// StandingProcess: holds all threads of a process where they are, as long as the object lives.
//
// It stops the process as a shell's job control does: its parent may notice. One that stood before
// is left standing.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>

#include <utility>

#include "decoder/base/result.h"

namespace tailtrace::python {

class StandingProcess {
 public:
  // Returns when every thread stands. Errors: kGone, kPermission; kSystem when one does not stop.
  static Result<StandingProcess> stop(pid_t pid);
  StandingProcess(StandingProcess&& other) noexcept
      : pid_(other.pid_), resume_(std::exchange(other.resume_, false)) {}
  ~StandingProcess();

 private:
  explicit StandingProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  bool resume_ = false;
};

}  // namespace tailtrace::python
