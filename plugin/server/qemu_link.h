// QemuLink: a program under qemu-user with our recorder in it, behind the face of a gdbserver.
//
// qemu's stub serves one program, from its start to its end, to one debugger. What a debugger asks
// beyond that is answered here: programs are started and ended on request (vRun, vKill, R), a
// program that executes another is met again in the new one's stub, and the program can be
// interrupted while it runs, which the stub does not notice. The stub calls each process 1; the
// debugger sees the system's number.
//
// Threading: one thread at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin/engines/qemu/qemu_live_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/server/rsp/connection.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/serve.h"
#include "plugin/server/server_link.h"

namespace tailtrace {

class QemuLink final : public ServerLink {
 public:
  // With a program in `options` it is started, and stands before its first instruction. The engine
  // is told of each program that runs; it must outlive the link.
  // Errors: as QemuProcess::launch.
  static Result<std::unique_ptr<QemuLink>> start(const ServeOptions& options,
                                                 bool inferior_owns_stdio, QemuLiveEngine& engine);
  ~QemuLink() override;

  Result<void> send(std::string_view payload) override;
  Result<void> send_frame(std::string_view frame) override;
  Result<void> interrupt() override;
  void add_poll(std::vector<pollfd>& polled) const override;
  Result<void> receive() override;
  Result<std::optional<rsp::Frame>> next() override;
  int shut_down(bool running) override;
  int exit_status() override;

  // Of the program; 0 while there is none.
  int pid() const { return process_ ? process_->pid() : 0; }

 private:
  QemuLink(const ServeOptions& options, bool inferior_owns_stdio, QemuLiveEngine& engine);

  Result<void> launch(std::vector<std::string> program);
  Result<void> connect();
  void end_program();
  void let_go();

  bool answer_here(std::string_view request);
  void answer_without_program(std::string_view request);
  void run(std::string_view arguments);
  void say_error(const Error& error);
  Result<void> greet_stub();
  bool set_environment(std::string_view request);
  std::vector<std::string> environment() const;
  void add_features(rsp::FeatureList& features) const;
  std::string executed_file() const;

  Result<void> connection_ended();
  Result<void> meet_next_program();
  std::string answer_for_debugger(std::string_view answer);
  std::string request_for_stub(std::string_view request);
  void reply(std::string payload);

  const ServeOptions& options_;
  bool inferior_owns_stdio_;
  QemuLiveEngine& engine_;

  std::vector<std::string> program_;                               // the newest
  std::map<std::string, std::optional<std::string>> environment_;  // changes to ours
  std::optional<QemuProcess> process_;
  std::unique_ptr<rsp::Connection> stub_;
  std::string supported_request_;  // the debugger's list of features
  bool wants_exec_ = false;        // it understands exec events
  bool expects_stop_ = false;      // a request to run was passed on
  bool asked_supported_ = false;   // the next answer is the stub's list of features
  bool asked_registers_ = false;   // the next answer is all registers
  bool hides_answer_ = false;      // the next answer is to a question of our own
  std::optional<int> ended_;       // exit status of the newest program that ended

  std::deque<std::string> replies_;  // made here
  UniqueFd replies_ready_;           // readable while there are any
  std::string current_;              // what next() handed out
};

}  // namespace tailtrace
