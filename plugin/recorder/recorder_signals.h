// RecorderSignals: the signals that a recorder waits for beside its program: SIGUSR2, SIGCHLD, and
// those that would end it. SIGXFSZ is ignored meanwhile: a file that may not grow is an error.
//
// Threading: one object at a time in a process, used by the thread that made it.
#pragma once

#include <signal.h>

#include <optional>

#include "decoder/base/file.h"

namespace tailtrace {

class RecorderSignals {
 public:
  // From now on they do not do what they did. `interrupt`: SIGINT, too.
  explicit RecorderSignals(bool interrupt);
  // They do again what they did; those that have come and were not taken are forgotten.
  ~RecorderSignals();
  RecorderSignals(const RecorderSignals&) = delete;
  RecorderSignals& operator=(const RecorderSignals&) = delete;

  // Readable when one has come.
  int fd() const { return fd_.get(); }
  // The number of one that has come; nothing when none has.
  std::optional<int> take();
  // Waits for one.
  int wait();

 private:
  sigset_t before_, waited_for_;
  void (*too_large_before_)(int);
  UniqueFd fd_;
};

}  // namespace tailtrace
