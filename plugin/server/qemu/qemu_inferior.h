// QemuInferior: one process under qemu-user with our recorder in it, spoken to through qemu's stub.
//
// The stub listens only while the program is stopped, calls its process 1 whatever its number, and
// ends its connection when the program ends or executes another one. What a debugger expects beyond
// that is made here: a program that was executed is met in its own stub, a running program can be
// interrupted, a stop at a breakpoint says so, and what a thread stopped for that nobody waits for
// any more is not told. The recorder keeps the other threads still while one is stopped.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plugin/engines/qemu/qemu_live_engine.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/server/below/end_signals.h"
#include "plugin/server/qemu/executable_parts.h"
#include "plugin/server/rsp/catch_request.h"
#include "plugin/server/rsp/connection.h"
#include "plugin/server/rsp/resume.h"
#include "plugin/server/rsp/signal_set.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

// What the stub calls its only process.
constexpr std::int32_t kStubPid = 1;

class QemuInferior {
 public:
  // It stands before its first instruction. `signals` end waiting for the stub.
  // Errors: as QemuProcess::launch.
  static Result<std::unique_ptr<QemuInferior>> launch(const QemuOptions& options,
                                                      const EndSignals& signals);
  // Kills the process, unless it was let go of.
  ~QemuInferior();

  std::int32_t pid() const { return process_.pid(); }
  Engine& engine() { return engine_; }
  // The folder of the recording of what it executes now; of what it executed last.
  std::string recording() const { return process_.process_folder(); }
  // What it executes: the program's file, and its arguments.
  std::vector<std::string> executed_program() const;
  // The file, from the root on.
  std::string executed_file() const;
  // As /proc/PID/cmdline would have it, were there no qemu.
  std::string command_line() const;
  // The thread that stopped last.
  ThreadId stopped_thread() const { return stopped_; }
  bool is_running() const { return running_; }

  // A request to the stub and its answer, both with the system's number of the process. "E01" when
  // the program runs or is gone. Errors: kGone when a signal ended the wait.
  Result<std::string> ask(std::string_view request);
  // The same, of a thread.
  Result<std::string> ask_of(ThreadId thread, std::string_view request);

  // Of the stopped program: how many bytes could be read, and what the kernel told it at its start
  // (getauxval(3)); empty while it is not known.
  std::size_t read_memory(Address address, std::span<std::uint8_t> out);
  Bytes auxiliary_vector();
  // Has it stop as it enters and leaves these system calls, also in the programs that it executes
  // from now on. False: the recorder could not be told.
  bool catch_calls(const rsp::CatchRequest& wanted);
  // Has it get these signals without a stop to be told of, unless it steps; also the programs that
  // it executes from now on.
  void pass_signals(const rsp::SignalSet& wanted);
  // The siginfo of the signal that it stopped for last; empty: of none, or it is not known.
  const Bytes& signal_info() const { return signal_info_; }
  // The number of the one that the thread was told to enter; all ones: it has not, or has left it.
  std::uint64_t call_of(ThreadId thread) const;
  // What it has mapped, as /proc/PID/`file` (maps or smaps) has it; nothing while it runs.
  std::optional<std::string> maps(const std::string& file);
  // The answer to a question of what is mapped at an address (memory_region.h); "E01" while it
  // runs.
  std::string region_at(std::uint64_t address);

  // Whether an action is meant for it, and makes it run.
  bool is_meant(const rsp::ResumeActions& actions) const;
  // REQUIRES: it is stopped, and is_meant().
  void resume(const rsp::ResumeActions& actions);
  // Makes it stop, as far as it takes SIGINT. Nothing if it is stopped.
  void interrupt();

  // What to poll for while it runs.
  int stub_fd() const { return stub_ ? stub_->in() : -1; }
  // A stop reply, once there is one; whoever only wanted it to stand still need not tell of it.
  struct Event {
    std::string reply;
    bool has_ended = false;
    bool was_interrupted = false;  // by us, and nothing else happened
  };
  // Errors: kSystem, kBadInput.
  Result<std::optional<Event>> take_event();

  // Lets go of it: it goes on by itself. The signal that it stopped for last, if it did for one and
  // `passes` says so, is delivered to it.
  void detach(const std::function<bool(std::uint8_t signal)>& passes);

 private:
  // Until the stub is looked at that does not answer.
  static constexpr int kPatience_ms = 100;

  QemuInferior(QemuProcess process, const QemuOptions& options, const EndSignals& signals)
      : process_(std::move(process)),
        program_(options.program),
        is_kept_(!options.kept_session.empty()),
        signals_(signals) {}

  // By what follows the Z of the request that set them.
  using Breakpoints = std::map<std::string, Address, std::less<>>;

  std::vector<std::string> words() const;
  Result<void> connect(bool is_first);
  Result<std::string> exchange(std::string_view request);
  Result<std::optional<Event>> event_of(std::string_view payload);
  Result<Event> connection_ended();
  Result<bool> is_at_breakpoint(ThreadId thread);
  static bool is_any_at(const Breakpoints& breakpoints, Address pc);
  Result<bool> has_room_for(std::string_view breakpoint, Address address);
  Result<std::string> change_breakpoint(std::string_view request, Address address);
  std::string change_watchpoint(std::string_view request);
  void remove_doomed();
  void send_wanted_interrupt();
  bool must_run(const rsp::ResumeAction& action) const;
  std::optional<Event> entered_call(std::string reply);
  std::string left_call();
  bool is_passed(std::uint8_t signal) const;
  void take_signal_info(std::string& reply);
  void take_halt();
  void wake_stub();
  void tell_interrupt(Event& event);
  bool has_ended(std::int32_t tid);
  void step_caught(const rsp::ResumeActions& actions, rsp::ResumeActions& own);
  void let_run(std::string_view request);
  void go_on();
  void step_stopped();
  void deliver(std::uint8_t signal);
  Result<std::optional<Address>> pc_of_stopped();
  bool is_untold(Address pc, bool was_to_step) const;
  WasExecuted was_executed();
  std::optional<std::string> maps_of_host(const std::string& file);

  QemuProcess process_;
  QemuLiveEngine engine_;
  std::vector<std::string> program_;
  bool is_kept_;  // what is recorded
  const EndSignals& signals_;
  std::unique_ptr<rsp::Connection> stub_;
  Breakpoints breakpoints_;    // of the debugger
  Breakpoints doomed_;         // taken away again, but for the stub
  std::set<Address> removed_;  // there are none any more
  // By what follows the Z of the request that set them.
  std::map<std::string, WatchedRange, std::less<>> watchpoints_;
  ThreadId stopped_;
  std::int32_t selected_tid_ = 0;  // in the stub; 0: not known
  rsp::ResumeActions resumed_with_;
  // Threads that were to step and have not told of it: whether the stub was told so, too.
  std::map<std::int32_t, bool> steps_;
  std::optional<std::uint8_t> step_signal_;  // the thread that stopped last takes it along
  SteppedThreads known_stepped_{};           // to the recorder
  CaughtNumbers caught_{};
  rsp::SignalSet passed_;
  std::map<std::int32_t, std::string> calls_;  // that threads were told to enter: their numbers
  Bytes signal_info_;
  std::optional<std::string> maps_;  // of the host, since it stopped
  std::uint8_t told_signal_ = 0;     // of the program, for which it stopped last
  // The signal that has stopped the process since it was resumed, as Ctrl-Z does; 0: none has.
  std::uint8_t halted_by_ = 0;
  int untold_halt_ = 0;     // the system's number of one that the debugger is still to be told of
  bool is_to_run_ = false;  // the thread that stopped last
  bool running_ = false;
  bool was_let_go_ = false;
  bool interrupt_wanted_ = false;  // since it was resumed
  bool interrupt_sent_ = false;    // and the program has not stopped for it yet
};

}  // namespace tailtrace
