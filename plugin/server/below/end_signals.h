// EndSignals: SIGINT, SIGTERM and SIGHUP as something to wait for instead of something that
// interrupts: whoever waits for anything else waits for them too, and whatever is to be tidied up
// is tidied up.
//
// Threading: one object at a time in a process, used by the thread that made it.
#pragma once

#include <poll.h>
#include <signal.h>

#include <initializer_list>
#include <vector>

#include "decoder/base/file.h"
#include "plugin/server/below/quiet_signal.h"

namespace tailtrace {

class EndSignals {
 public:
  // SIGPIPE does nothing meanwhile.
  explicit EndSignals(std::initializer_list<int> signals = {SIGINT, SIGTERM, SIGHUP});
  // The signals do what they did before.
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Readable when one has come.
  int fd() const { return fd_.get(); }
  // Its number; 0 when none has come. The first one that came stays the one.
  int take();
  bool has_come() const;

  // Waits until something of `polled` is ready, or the time is over (-1: never). Errors: kGone when
  // a signal has come, whether or not anything else is ready; kSystem.
  Result<void> wait(std::vector<pollfd>& polled, int timeout_ms = -1) const;

 private:
  sigset_t before_;
  QuietSignal pipe_{SIGPIPE};  // a peer that is gone is seen when it is written to
  UniqueFd fd_;
  int taken_ = 0;
};

}  // namespace tailtrace
