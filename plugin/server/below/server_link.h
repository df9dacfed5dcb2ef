// ServerLink: the server below, that really holds the program: packets to it and from it.
//
// Threading: one thread at a time.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "plugin/server/below/step_row.h"
#include "plugin/server/rsp/frame.h"

namespace tailtrace {

// The exit status for a program that there is not, a server too, as of a shell.
constexpr int kNoProgram = 127;
// So long a server may take to end by itself.
constexpr int kServerPatience_ms = 2000;

class ServerLink {
 public:
  virtual ~ServerLink() = default;

  // Errors of all: kGone when the server is gone.
  virtual Result<void> send(std::string_view payload) = 0;
  // Packets framed by rsp::append_frame, to be sent as they are.
  virtual Result<void> send_frame(std::string_view frame) = 0;
  // As the debugger's break: the program is to stop.
  virtual Result<void> interrupt() = 0;

  // What to poll for. receive() is called when any of it is ready.
  virtual void add_poll(std::vector<pollfd>& polled) const = 0;
  virtual Result<void> receive() = 0;
  // The next packet or notification that came. Its payload is valid until the next call.
  virtual Result<std::optional<rsp::Frame>> next() = 0;

  // Ends the server: programs that it made are killed, attached ones let go. `running` says that
  // it owes a stop. Returns its exit status.
  virtual int shut_down(bool running) = 0;
  // The process whose signals stop the program's threads for the server's own needs, and are to
  // stay unnoticed; -1: there is none, or the server sees to it.
  virtual pid_t process() const { return -1; }
  // The process that makes steps of programs; -1: it is not known, or there is none.
  virtual pid_t tracer() const { return -1; }
  // By which it makes several steps for one; null: it cannot.
  virtual StepRow* step_row() { return nullptr; }
  // The exit status of a server that ended by itself.
  virtual int exit_status() = 0;
};

}  // namespace tailtrace
