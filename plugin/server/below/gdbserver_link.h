// GdbserverLink: a gdbserver of our own, and what it says to its user.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "plugin/server/below/end_signals.h"
#include "plugin/server/below/new_threads.h"
#include "plugin/server/below/server_link.h"
#include "plugin/server/below/server_options.h"
#include "plugin/server/below/terminal_loan.h"
#include "plugin/server/rsp/connection.h"

namespace tailtrace {

class GdbserverLink final : public ServerLink {
 public:
  // What became of starting a gdbserver: a link, or the exit status of one that gave up by itself
  // and has said why.
  struct Started {
    std::unique_ptr<GdbserverLink> link;
    int exit_status = 0;
  };

  // Returns when the program stands at its first instruction. Errors: kNoEngine when there is no
  // gdbserver, kSystem.
  static Result<Started> start(const ServeOptions& options, bool inferior_owns_stdio,
                               EndSignals& signals);

  ~GdbserverLink() override;

  NewThreads& new_threads() { return new_threads_; }

  Result<void> send(std::string_view payload) override;
  Result<void> send_frame(std::string_view frame) override;
  Result<void> interrupt() override;
  void add_poll(std::vector<pollfd>& polled) const override;
  Result<void> receive() override;
  Result<std::optional<rsp::Frame>> next() override;
  int shut_down(bool running) override;
  int exit_status() override;
  pid_t tracer() const override { return pid_; }
  StepRow* step_row() override { return &new_threads_.step_row(); }
  pid_t process() const override { return pid_; }

 private:
  using Say = std::function<void(std::string_view line)>;

  GdbserverLink(UniqueFd talk, UniqueFd messages, NewThreads new_threads, pid_t pid, Say say);

  Result<bool> await_first_answer(EndSignals& signals);
  bool exits_within(int timeout_ms);
  std::optional<std::string> says_within(int timeout_ms);
  bool stands_within(int timeout_ms);
  bool holds_program();
  void stop_program();
  void note_answer(std::string_view payload);
  void read_messages();
  void take_message(std::string_view line);

  std::unique_ptr<rsp::Connection> connection_;
  UniqueFd messages_;
  NewThreads new_threads_;
  std::string message_;  // what came of a line so far
  Say say_;
  pid_t pid_ = -1;
  UniqueFd process_;              // ready when it has exited
  pid_t program_ = -1;            // made, or attached to, last
  std::set<std::string> points_;  // where the debugger has it stop, which outlast gdbserver
  bool runs_ = false, is_interrupted_ = false;  // in all-stop
  std::deque<std::string> own_answers_;
  std::string handed_out_;
  TerminalLoan terminal_;
};

}  // namespace tailtrace
