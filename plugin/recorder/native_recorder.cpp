#include "plugin/recorder/native_recorder.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>

#include "decoder/symbols/deleted_files.h"
#include "plugin/engines/protocol_signals.h"
#include "plugin/engines/step/one_cpu.h"
#include "plugin/engines/step/step_engine.h"
#include "plugin/recorder/black_box.h"
#include "plugin/recorder/debug_registers.h"
#include "plugin/recorder/entries.h"
#include "plugin/recorder/recorder_signals.h"
#include "plugin/recorder/signal_fate.h"
#include "plugin/recorder/traced_process.h"
#include "plugin/recorder/trigger_places.h"
#include "plugin/recorder/triggers.h"

namespace tailtrace {
namespace {

using Event = TracedProcess::Event;

class NativeRecorder final : public Subject {
 public:
  NativeRecorder(TracedProcess process, std::unique_ptr<BranchKeeper> keeper,
                 const FlightPlan& plan)
      : process_(std::move(process)),
        keeper_(std::move(keeper)),
        plan_(plan),
        signals_(plan.ends_by_user),
        began_(clock_now()),
        command_(command_of(process_.pid())),
        triggers_(plan.triggers, process_.pid()) {}

  // A program that stands before its first instruction.
  Result<void> begin_started() {
    is_started_ = true;
    if (auto ok = begin(process_.pid()); !ok) return ok;
    program_replaced();
    if (auto ok = set_places(); !ok) return ok;
    return go_on(process_.pid(), 0);
  }
  Result<void> begin_running() {
    auto armed = arm();
    if (!armed) process_.detach({});
    return armed;
  }

  Result<FlightEnd> follow();

  std::vector<ThreadId> threads() override {
    std::vector<ThreadId> threads;
    for (const auto& [tid, thread] : threads_)
      if (process_.stands(tid)) threads.push_back({process_.pid(), tid});
    return threads;
  }
  Result<ThreadSnapshot> snapshot(ThreadId thread) override {
    const bool is_crashed = thread.tid == crashed_tid_;
    return keeper_->snapshot(thread, {process_.pc(thread.tid), is_crashed});
  }
  std::optional<user_regs_struct> registers(ThreadId thread) override {
    return process_.registers(thread.tid);
  }
  std::optional<user_fpregs_struct> vector_registers(ThreadId thread) override {
    return process_.vector_registers(thread.tid);
  }
  std::string code_maps() override { return all_maps(); }
  std::string all_maps() override { return process_maps(process_.pid()).value_or(""); }
  Bytes auxiliary_vector() override { return auxiliary_vector_of(process_.pid()); }
  std::size_t read_memory(Address address, std::span<std::uint8_t> out) override {
    return read_process_memory(process_.pid(), address, out);
  }

 private:
  struct Thread {
    Address pc;      // where it stood when it was resumed last
    int signal = 0;  // it was resumed with, or is to be
    bool is_stepping = false;
    bool is_running = false;  // in the place of many steps, up to where an instruction ends
    bool is_group_stopped = false;
  };

  Result<FlightEnd> follow_to_end();
  Result<void> begin(pid_t tid);
  Result<void> take(const Event& event);
  Result<void> take_signal(const Event& event);
  Result<void> take_trap(const Event& event);
  Result<void> take_user(int signal);
  void note_step(pid_t tid);
  std::optional<std::uint64_t> call_of(pid_t tid, const Instruction& next) const;
  bool runs_through_rounds(pid_t tid, const Instruction& next);
  void begin_step(pid_t tid, Thread& thread, int signal);
  Result<void> go_on(pid_t tid, int signal);
  void resume_all();
  // Threads are recorded from where they are met.
  bool all_have_begun() const {
    return std::ranges::all_of(process_.threads(),
                               [this](pid_t tid) { return threads_.contains(tid); });
  }

  Result<void> arm();
  Result<void> watch_places();
  void take_load();
  void program_replaced();
  Result<void> set_places();

  Occasion occasion(std::string cause, int signal, pid_t tid) const {
    return {std::move(cause), signal, {process_.pid(), tid}, command_, began_};
  }
  Result<void> end_recording(const Occasion& occasion);
  Result<void> take_snapshot();
  Result<std::string> save(const Occasion& occasion, const std::string& path);
  void say_remarks(std::vector<Error> remarks) const;

  TracedProcess process_;
  std::unique_ptr<BranchKeeper> keeper_;
  const FlightPlan& plan_;
  RecorderSignals signals_;
  BundleClock began_;
  std::string command_;
  bool is_started_ = false;
  bool is_recording_ = true;
  bool is_dying_ = false;
  pid_t crashed_tid_ = 0;
  FlightEnd end_;

  Event at_hand_;  // that is being taken
  std::map<pid_t, Thread> threads_;
  Address entry_;  // of the program, until it was there; what needs it comes then
  TriggerPlaces triggers_;
  std::vector<DebugPlace> places_;  // of all threads
  OneCpu one_cpu_;
};

Result<void> NativeRecorder::begin(pid_t tid) {
  if (threads_.contains(tid) || !is_recording_) return {};
  threads_[tid] = {};
  auto begun = keeper_->begins({process_.pid(), tid});
  if (!begun && begun.error().code == ErrorCode::kGone) return {};
  if (!begun) return begun;
  return places_.empty() ? Result<void>() : set_debug_places(tid, places_);
}

// Names of functions are looked up when everything that the program needs is mapped.
void NativeRecorder::program_replaced() {
  triggers_.forget();
  places_.clear();
  entry_ = plan_.triggers.needs_debug_registers() ? program_entry(process_.pid()) : Address();
  if (entry_.is_null()) return;
  if (!keeper_->needs_steps()) places_ = {{entry_, true}};
}

Result<void> NativeRecorder::arm() {
  entry_ = {};
  if (auto ok = triggers_.find(mappings_of(process_.pid(), all_maps())); !ok) return ok;
  return watch_places();
}

Result<void> NativeRecorder::watch_places() {
  places_ = triggers_.places(keeper_->needs_steps());
  const std::size_t count = places_.size();
  places_.resize(std::min(count, kDebugRegisters));
  if (auto ok = set_places(); !ok || count == places_.size()) return ok;
  return fail(triggers_.too_many(count));
}

// Nothing of the library has run. What is wrong with a name ends no program that runs by now.
void NativeRecorder::take_load() {
  if (!triggers_.load(mappings_of(process_.pid(), all_maps()), plan_.say)) return;
  process_.stop();
  for (pid_t tid : process_.threads()) note_step(tid);
  if (auto ok = watch_places(); !ok) plan_.say(ok.error().to_string());
}

Result<void> NativeRecorder::set_places() {
  for (const auto& [tid, thread] : threads_)
    if (process_.stands(tid))
      if (auto ok = set_debug_places(tid, places_); !ok) return ok;
  return {};
}

void NativeRecorder::note_step(pid_t tid) {
  auto thread = threads_.find(tid);
  if (thread == threads_.end() || !std::exchange(thread->second.is_stepping, false)) return;
  if (std::exchange(thread->second.is_running, false))
    (void)set_debug_places(tid, places_).has_value();
  const Address pc = process_.pc(tid);
  keeper_->stepped({process_.pid(), tid}, thread->second.pc, pc, thread->second.signal);
}

// The number of the system call, if that is what the thread does next.
std::optional<std::uint64_t> NativeRecorder::call_of(pid_t tid, const Instruction& next) const {
  if (next.kind != InstructionClass::kSystemCall) return std::nullopt;
  const auto registers = process_.registers(tid);
  return registers ? std::optional<std::uint64_t>(registers->rax) : std::nullopt;
}

// Through a string instruction that has many to go; a debug register stops it behind that.
bool NativeRecorder::runs_through_rounds(pid_t tid, const Instruction& next) {
  if (!places_.empty() || next.kind != InstructionClass::kRepString) return false;
  const auto registers = process_.registers(tid);
  if (!registers || registers->rcx < StepEngine::kManyRounds) return false;
  const DebugPlace behind{next.next(), true};
  return set_debug_places(tid, {&behind, 1}).has_value();
}

void NativeRecorder::begin_step(pid_t tid, Thread& thread, int signal) {
  thread.pc = process_.pc(tid);
  const auto next = keeper_->instruction_at({process_.pid(), tid}, thread.pc);
  one_cpu_.step({process_.pid(), tid}, next ? call_of(tid, *next) : std::nullopt);
  thread.is_running = next && signal == 0 && runs_through_rounds(tid, *next);
}

Result<void> NativeRecorder::go_on(pid_t tid, int signal) {
  Thread& thread = threads_[tid];
  thread.signal = signal;
  thread.is_stepping = is_recording_ && keeper_->needs_steps();
  if (thread.is_stepping) begin_step(tid, thread, signal);
  process_.resume(tid, signal, thread.is_stepping && !thread.is_running);
  return {};
}

void NativeRecorder::resume_all() {
  for (pid_t tid : process_.threads()) {
    if (!process_.stands(tid) || process_.is_to_be_told(tid)) continue;
    auto thread = threads_.find(tid);
    if (thread != threads_.end() && thread->second.is_group_stopped)
      process_.listen(tid);
    else
      (void)go_on(tid, 0);
  }
}

Result<void> NativeRecorder::take(const Event& event) {
  if (event.kind != Event::Kind::kGone) note_step(event.tid);
  if (threads_.contains(event.tid))
    threads_[event.tid].is_group_stopped = event.kind == Event::Kind::kStopped;
  switch (event.kind) {
    case Event::Kind::kBegins:
      if (auto ok = begin(event.tid); !ok) return ok;
      break;
    case Event::Kind::kSignal:
      return take_signal(event);
    case Event::Kind::kTrap:
      return take_trap(event);
    case Event::Kind::kReplaced:
      std::erase_if(threads_, [&](const auto& entry) { return entry.first != event.tid; });
      keeper_->replaced({process_.pid(), event.tid}, process_.pc(event.tid));
      command_ = command_of(process_.pid());
      program_replaced();
      if (auto ok = set_places(); !ok) return ok;
      break;
    case Event::Kind::kExits:
      // Of all other ends the signal told before.
      if (is_recording_ && WIFSIGNALED(event.status) && WTERMSIG(event.status) == SIGKILL)
        if (auto ok = end_recording(occasion(signal_text(SIGKILL), SIGKILL, event.tid)); !ok)
          return ok;
      keeper_->ends({process_.pid(), event.tid});
      threads_.erase(event.tid);
      process_.resume(event.tid, 0, false);
      return {};
    case Event::Kind::kGone:
      keeper_->ends({process_.pid(), event.tid});
      threads_.erase(event.tid);
      if (event.tid == process_.pid()) end_.status = event.status;
      return {};
    case Event::Kind::kStopped:
      process_.listen(event.tid);
      return {};
    case Event::Kind::kNothing:
      break;
  }
  return go_on(event.tid, 0);
}

Result<void> NativeRecorder::take_signal(const Event& event) {
  const bool is_wanted =
      std::ranges::find(plan_.triggers.signals, event.signal) != plan_.triggers.signals.end();
  const bool is_end = is_deadly(process_.pid(), event.signal);
  if (is_recording_ && (is_wanted || (is_end && is_crash_signal(event.signal)))) {
    if (is_fault(event.signal)) crashed_tid_ = event.tid;
    is_dying_ = is_end;
    auto ended = end_recording(occasion(signal_text(event.signal), event.signal, event.tid));
    if (!ended) return ended;
  }
  return go_on(event.tid, event.signal);
}

Result<void> NativeRecorder::take_trap(const Event& event) {
  if (!is_recording_) return go_on(event.tid, 0);
  const DebugPlace* hit = nullptr;
  if (!places_.empty())
    if (auto number = take_debug_hit(event.tid); number && *number < places_.size())
      hit = &places_[*number];
  const Address pc = process_.pc(event.tid);
  if (!entry_.is_null() && pc == entry_) {
    if (auto armed = arm(); !armed) return armed;
  } else if (triggers_.is_loader(pc)) {
    take_load();
    resume_all();
    return {};
  } else if (triggers_.is_function(pc)) {
    auto ended = end_recording(occasion(fmt::format("function at {:#x}", pc.value), 0, event.tid));
    if (!ended) return ended;
  } else if (hit != nullptr && !hit->is_code) {
    auto ended =
        end_recording(occasion(fmt::format("access to {:#x}", hit->address.value), 0, event.tid));
    if (!ended) return ended;
  }
  return go_on(event.tid, 0);
}

Result<std::string> NativeRecorder::save(const Occasion& occasion, const std::string& path) {
  std::vector<Error> remarks;
  auto writer = put_together(*this, occasion, plan_, path, remarks);
  if (writer) {
    if (auto finished = writer->finish(); !finished) return fail(std::move(finished.error()));
  }
  for (Error& remark : keeper_->take_remarks()) remarks.push_back(std::move(remark));
  say_remarks(std::move(remarks));
  if (!writer) return fail(std::move(writer.error()));
  return writer->path();
}

void NativeRecorder::say_remarks(std::vector<Error> remarks) const {
  for (const Error& remark : remarks) plan_.say(remark.to_string());
}

// The program goes on without us, be it to its end.
Result<void> NativeRecorder::end_recording(const Occasion& occasion) {
  process_.stop();
  for (pid_t tid : process_.threads()) note_step(tid);
  auto saved = save(occasion, plan_.bundle);
  is_recording_ = false;
  one_cpu_.leave();
  places_.clear();
  (void)set_places().has_value();  // of threads that are ending they are of no use
  if (!saved) return fail(std::move(saved.error()));
  end_.bundle = *saved;
  return {};
}

Result<void> NativeRecorder::take_snapshot() {
  process_.stop();
  for (pid_t tid : process_.threads()) note_step(tid);
  const std::string path = free_snapshot_path(plan_.bundle);
  auto saved = save(occasion("snapshot", 0, 0), path);
  // The recording goes on, and there may be room later.
  plan_.say(saved ? "snapshot: tailtrace history " + *saved : saved.error().to_string());
  resume_all();
  return {};
}

Result<void> NativeRecorder::take_user(int signal) {
  if (signal == SIGUSR2) return is_recording_ ? take_snapshot() : Result<void>();
  if (!plan_.ends_by_user) {
    ::kill(process_.pid(), signal);
    return {};
  }
  is_dying_ = false;
  return is_recording_ ? end_recording(occasion("end of the recording", 0, 0)) : Result<void>();
}

Result<FlightEnd> NativeRecorder::follow() {
  auto end = follow_to_end();
  if (end) return end;
  process_.stop();
  one_cpu_.leave();
  places_.clear();
  (void)set_places().has_value();
  if (!is_started_) process_.detach({{at_hand_.tid, at_hand_.signal}});
  return end;
}

Result<FlightEnd> NativeRecorder::follow_to_end() {
  bool is_told = false;
  while (process_.has_threads()) {
    while (auto event = process_.next()) {
      at_hand_ = *event;
      if (auto ok = take(*event); !ok) return fail(std::move(ok.error()));
    }
    at_hand_ = {};
    if (!is_recording_) {
      // One that is dying is followed to its end: its threads wait for each other then, and would
      // not stand still for us.
      if (!is_started_ && !is_dying_) return process_.detach({}), end_;
      resume_all();
    }
    if (!process_.has_threads()) break;
    if (!std::exchange(is_told, is_told || all_have_begun()) && is_told) plan_.begins();
    const int signal = signals_.wait();
    if (signal != SIGCHLD)
      if (auto ok = take_user(signal); !ok) return fail(std::move(ok.error()));
  }
  if (is_recording_) say_remarks(triggers_.missing());
  return end_;
}

}  // namespace

Result<FlightEnd> record_started(FollowedProgram program, std::unique_ptr<BranchKeeper> keeper,
                                 const FlightPlan& plan) {
  NativeRecorder recorder(TracedProcess::adopt(program.pid()), std::move(keeper), plan);
  if (auto ok = recorder.begin_started(); !ok) return fail(std::move(ok.error()));
  auto end = recorder.follow();
  if (end) program.release();
  return end;
}

Result<FlightEnd> record_running(pid_t pid, std::unique_ptr<BranchKeeper> keeper,
                                 const FlightPlan& plan) {
  auto process = TracedProcess::attach(pid);
  if (!process) return fail(std::move(process.error()));
  NativeRecorder recorder(std::move(*process), std::move(keeper), plan);
  if (auto ok = recorder.begin_running(); !ok) return fail(std::move(ok.error()));
  return recorder.follow();
}

}  // namespace tailtrace
