// The command line under which our own gdbserver runs, and the descriptors it gets.
//
// gdbserver speaks to us on its stdin and stdout (a socket pair: private, and never cut short by a
// signal as a terminal is), and its messages come through a pipe. The program it runs must not see
// any of that: a wrapper gives it back the real descriptors.
//
// Threading: values.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "plugin/server/below/new_threads.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

class GdbserverCommand {
 public:
  // The program gets the descriptors that the options name; else our 0, 1 and 2 if
  // `inferior_owns_stdio`; else 0 is empty and 1 goes where 2 goes.
  // Errors: kSystem when there are no descriptors to keep them in meanwhile.
  static Result<GdbserverCommand> make(const ServeOptions& options, bool inferior_owns_stdio);

  // Starts it; `talk` becomes its stdin and stdout, `messages` its stderr. Errors: kSystem.
  Result<pid_t> start(int talk, int messages, const NewThreads& new_threads) const;

  const std::vector<std::string>& words() const { return words_; }

 private:
  [[noreturn]] void become(int talk, int messages, const NewThreads& new_threads,
                           pid_t parent) const;

  std::vector<std::string> words_;
  bool outlives_us_ = false;      // it is not killed when we are
  std::string shell_;             // for SHELL; empty: ours will do
  std::array<int, 3> keepers_{};  // where the program's 0, 1, 2 are kept until it takes them
  std::array<int, 3> stdio_{};    // what they are; -1 is /dev/null
};

}  // namespace tailtrace
