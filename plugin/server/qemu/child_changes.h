// ChildChanges: that a child of this process has stopped or ended, as something to wait for.
//
// Threading: one object at a time in a process, used by the thread that made it, before others are.
#pragma once

#include <signal.h>

#include "decoder/base/file.h"

namespace tailtrace {

class ChildChanges {
 public:
  ChildChanges();
  ~ChildChanges();
  ChildChanges(const ChildChanges&) = delete;
  ChildChanges& operator=(const ChildChanges&) = delete;

  // Readable when one has.
  int fd() const { return fd_.get(); }
  // It is not readable before another one has.
  void forget() const;

 private:
  sigset_t before_;
  UniqueFd fd_;
};

}  // namespace tailtrace
