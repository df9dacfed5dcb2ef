// QemuLink: makes programs under qemu look to the proxy as a gdbserver does: several processes with
// their real numbers, started and ended on request (vRun, vKill, R), files, and one stop for all.
//
// Requests about a stopped program are its own stub's business; what no stub knows is answered
// here. Only all-stop: there is no request to run and another one before the stop.
//
// Threading: one thread at a time.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "plugin/server/below/server_link.h"
#include "plugin/server/qemu/child_changes.h"
#include "plugin/server/qemu/host_files.h"
#include "plugin/server/qemu/qemu_programs.h"
#include "plugin/server/rsp/signal_set.h"
#include "plugin/server/rsp/transfer.h"

namespace tailtrace {

class QemuLink final : public ServerLink {
 public:
  // `programs` outlives it.
  QemuLink(const ServeOptions& options, QemuPrograms& programs);

  // Starts a program; it stands before its first instruction. Errors: as QemuPrograms::launch.
  Result<QemuInferior*> start(std::vector<std::string> program);

  Result<void> send(std::string_view payload) override;
  Result<void> send_frame(std::string_view frame) override;
  Result<void> interrupt() override;
  void add_poll(std::vector<pollfd>& polled) const override;
  Result<void> receive() override;
  Result<std::optional<rsp::Frame>> next() override;
  int shut_down(bool running) override;
  int exit_status() override { return ended_with_; }

 private:
  // The answer to a request that the function knows; nothing for all others. Errors: kGone.
  using Answer = Result<std::optional<std::string>>;

  struct PendingStop {
    ThreadId thread;
    std::string reply;
  };

  Result<std::string> answer(std::string_view request);
  Answer answer_control(std::string_view request);
  Answer answer_setting(std::string_view request);
  bool set_stdio(std::string_view setting);
  Answer answer_of_threads(std::string_view request);
  Answer answer_transfer(std::string_view request);
  Answer answer_of_stub(std::string_view request);
  Answer answer_of_memory(QemuInferior& inferior, std::string_view request);
  Answer answer_untold(std::string_view request);
  std::string memory_region_at(std::string_view digits);
  std::string signal_info(const rsp::TransferRequest& request);
  std::string libraries(const rsp::TransferRequest& request);
  Result<std::string> threads(const rsp::TransferRequest& request);
  Result<std::string> thread_local_variable(std::string_view request);

  std::string supported(std::string_view request);
  Result<std::string> status();
  Result<std::string> select(std::string_view request);
  Result<std::vector<ThreadId>> all_threads();
  Result<std::string> list_threads();
  Result<std::string> is_alive(std::string_view thread);
  Result<std::optional<ThreadId>> living(const rsp::ThreadSelector& meant);
  Result<std::string> run(std::string_view arguments);
  std::string kill(std::string_view pid);
  std::string detach(std::string_view request);
  void kill_all();
  void restart();

  Result<void> resume(std::string_view request);
  Result<void> take_events();
  Result<void> stop_others(const QemuInferior& stopped);
  void report(PendingStop stop);
  bool forget(std::int32_t pid);  // whether something was still to be told of it

  std::optional<std::string> made_file(const std::string& path);
  std::optional<std::string> made_link(const std::string& path);
  QemuInferior* selected();
  void say(std::string_view line) const;
  void push(std::string payload);

  const ServeOptions& options_;
  QemuPrograms& programs_;
  HostFiles files_;
  ChildChanges changes_;
  std::vector<std::string> program_;  // started last
  ThreadId general_;                  // Hg
  rsp::ThreadSelector run_choice_;    // Hc
  rsp::SignalSet passed_signals_;     // without a word
  // That the debugger has programs get; nothing: it did not say.
  std::optional<rsp::SignalSet> program_signals_;
  bool wants_exec_ = false;          // the debugger understands exec events
  bool wants_no_resumed_ = false;    // and that nothing runs any more
  bool owes_stop_ = false;           // a request to run was made
  bool exits_ = false;               // after `monitor exit`
  int ended_with_ = 0;               // exit status of the program that ended last
  std::deque<PendingStop> pending_;  // of programs that stopped beside the one that was told of

  std::deque<std::string> answers_;
  UniqueFd answers_ready_;  // readable while there are any
  std::string current_;     // what next() handed out
};

}  // namespace tailtrace
