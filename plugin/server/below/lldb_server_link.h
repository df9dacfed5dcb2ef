// LldbServerLink: LLDB's own lldb-server, started by us, as the server below.
//
// It is spoken to over a socket pair, which it is given as it would be by LLDB. Once that is
// closed it ends, as it does when its LLDB is gone: programs that it started end with it, those
// that it attached to run on. To these it says so before: their threads are in the middle of steps.
//
// Threading: one thread at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plugin/server/below/end_signals.h"
#include "plugin/server/below/new_threads.h"
#include "plugin/server/below/server_link.h"
#include "plugin/server/rsp/connection.h"

namespace tailtrace {

class LldbServerLink final : public ServerLink {
 public:
  // What became of starting one: a link, or the exit status of one that gave up by itself and has
  // said why.
  struct Started {
    std::unique_ptr<LldbServerLink> link;
    int exit_status = 0;
  };

  // `path` is the lldb-server; `words` follow `gdbserver --fd=N` on its command line. Returns when
  // it answers. Errors: kSystem; kNoEngine when it is something else; kGone when a signal has come.
  static Result<Started> start(const std::string& path, const std::vector<std::string>& words,
                               EndSignals& signals);

  ~LldbServerLink() override;

  NewThreads& new_threads() { return new_threads_; }

  Result<void> send(std::string_view payload) override;
  Result<void> send_frame(std::string_view frame) override { return connection_->send_raw(frame); }
  Result<void> interrupt() override { return connection_->send_raw("\x03"); }
  void add_poll(std::vector<pollfd>& polled) const override;
  Result<void> receive() override;
  Result<std::optional<rsp::Frame>> next() override { return connection_->next(); }
  int shut_down(bool running) override;
  int exit_status() override;
  pid_t tracer() const override { return pid_; }
  StepRow* step_row() override { return &new_threads_.step_row(); }

 private:
  LldbServerLink(UniqueFd talk, NewThreads new_threads, pid_t pid);

  Result<bool> await_first_answer(EndSignals& signals);
  bool exits_within(int timeout_ms);
  bool says_within(int timeout_ms, std::string_view word);
  void let_go(bool running);

  std::unique_ptr<rsp::Connection> connection_;
  NewThreads new_threads_;
  pid_t pid_ = -1;
  UniqueFd process_;  // ready when it has exited
  bool has_attached_ = false;
  std::set<std::string> breakpoints_;  // as in Z0 and z0
};

// A program that is no lldb-server, or is one that does not work here: the error.
tl::unexpected<Error> not_lldb_server(const std::string& path, std::string why);

// The lldb-server to use: `named` if it is not empty, else the one beside the LLDB that is process
// `debugger`, else the newest in `search_path`. Never the program that asks.
// Errors: kNoEngine when there is none.
Result<std::string> find_lldb_server(const std::string& named, pid_t debugger,
                                     const std::string& search_path);

}  // namespace tailtrace
