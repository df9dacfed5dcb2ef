// NewThreads: a library of ours in the server below, by which that tells of threads which a program
// makes, before they run (gdbserver_preload/new_threads.h), and makes steps in rows (step_row.h).
//
// Threading: one thread at a time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "plugin/server/below/step_row.h"

namespace tailtrace {

class NewThreads {
 public:
  // Errors: kSystem; as find_own_file().
  static Result<NewThreads> open();

  // In the child that becomes the server; descriptors below `first_free` are for something else.
  // `nothing_else` is for a server which the library is not made for: it does no more there.
  void become_its(int first_free, bool nothing_else) const;
  // In the parent, when there is a child.
  void started() { its_.reset(); }

  // Is called for each thread while the server is listened to.
  void set_on_new_thread(std::function<void(std::int32_t tid)> meet) { meet_ = std::move(meet); }
  void add_poll(std::vector<pollfd>& polled) const;
  // Meets those that were told of. The server waits until each was taken note of.
  void receive();
  StepRow& step_row() { return row_; }
  // Nobody is told any more, and nobody waits.
  void close() { ours_.reset(); }

 private:
  UniqueFd ours_, its_;
  StepRow row_;
  std::string library_;
  std::function<void(std::int32_t tid)> meet_;
};

}  // namespace tailtrace
