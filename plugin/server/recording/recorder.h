// Recorder: the threads whose history is recorded, where each of them stands, and the engine that
// holds what they did.
//
// A thread that was resumed for a single step may be one step further than it reported when
// something else stops the program. Recorder knows which ones are unsettled in this way, and
// settles them before anybody looks.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "plugin/engines/engine.h"
#include "plugin/engines/step/step_engine.h"
#include "plugin/provider/kept_recording.h"
#include "plugin/server/below/below.h"
#include "plugin/server/recording/btrace_format.h"
#include "plugin/server/recording/snapshot_cut.h"

namespace tailtrace {

struct RecordedThread {
  ThreadId id;
  Engine::Stop stop;  // where it stands, as last reported or read
  bool pc_known = false;
  bool pc_written = false;   // the debugger may have changed it since
  bool unsettled = false;    // may be one step further
  bool has_stepped = false;  // its last stop was surely the end of a step
  int signal = 0;            // it was resumed with, until its next report (the system's number)
  std::optional<std::uint64_t> call;  // that it is about to make there, once it was asked for

  // It was resumed, and nobody tells where it goes.
  void has_run() {
    pc_known = pc_written = false;
    call.reset();
    stop.faulted = false;
  }

  // Set by `Qbtrace`; a thread of a recorded process is recorded before the debugger asks.
  std::optional<BtraceFormat> enabled;
  std::uint64_t buffer_size_bytes = 0;   // as the debugger asked for it then, rounded
  HistoryMark begin;                     // the debugger is shown nothing older
  bool begun_before_enabled = false;     // the debugger believes that it began later
  std::optional<HistoryMark> last_read;  // what the debugger has
};

class Recorder {
 public:
  // `step` is the engine itself when it wants to be told of steps, else null.
  Recorder(Below& below, Engine& engine, StepEngine* step)
      : below_(below), engine_(engine), step_(step) {}

  Engine& engine() { return engine_; }
  bool needs_steps() const { return step_ != nullptr; }

  // Histories are handed to it before they are dropped. It outlives the recorder.
  void keep_in(KeptRecording& kept) { kept_ = &kept; }
  // Hands over what there is at the end.
  void keep_all();

  // Kept for threads recorded from now on; the engine may have its own idea.
  void set_ring_records(std::uint64_t records) {
    if (step_ != nullptr) step_->configure({records});
  }

  bool empty() const { return threads_.empty(); }
  // How many threads were met so far.
  std::uint64_t met() const { return met_; }
  // Null when the thread is not recorded.
  RecordedThread* find(ThreadId thread);
  bool records_process(std::int32_t pid) const;
  const std::map<ThreadId, RecordedThread>& threads() const { return threads_; }
  template <class F>
  void for_each(F&& f) {
    for (auto& [id, thread] : threads_) f(thread);
  }

  // Records a thread from where it stands. Errors: of the engine, or that it cannot be looked at.
  Result<RecordedThread*> start(ThreadId thread);
  // The same for a thread that runs: from where it is met next.
  Result<RecordedThread*> start_running(ThreadId thread);
  // The same for a new thread that stands at `pc`, unless its process is not recorded.
  void thread_created(ThreadId thread, Address pc);
  // The same for one that has not run yet, by its number alone.
  void thread_made(std::int32_t tid);
  Result<void> stop(ThreadId thread);

  // A stop report: the thread stands at `pc` now. False when a trap there need not be the end of
  // a single step: see StepEngine::stepped.
  bool stopped_at(RecordedThread& thread, Address pc) {
    bool certain = true;
    thread.has_stepped = step_ != nullptr && thread.pc_known;
    if (thread.has_stepped) certain = step_->stepped(thread.id, thread.stop.pc, pc, thread.signal);
    thread.has_stepped &= certain;
    thread.stop = {pc, false};
    thread.pc_known = true;
    thread.unsettled = false;
    thread.signal = 0;
    thread.call.reset();
    return certain;
  }

  // The instruction it stands at, as far as that is known.
  std::optional<Instruction> next_instruction(const RecordedThread& thread) {
    if (step_ == nullptr || !thread.pc_known || thread.pc_written || thread.unsettled) return {};
    return step_->instruction_at(thread.id, thread.stop.pc);
  }
  // Whether the kernel's code in the process (vDSO) is there.
  bool is_in_vdso(const RecordedThread& thread) {
    return step_ != nullptr && step_->is_in_vdso(thread.id, thread.stop.pc);
  }
  // Code that nothing but a system call can change: where the thread is in the vDSO that, else all
  // other of its process. REQUIRES: needs_steps().
  std::span<const FormerMaps::Range> stable_code(const RecordedThread& thread) {
    return step_->stable_code(thread.id, thread.stop.pc);
  }
  // The number of the system call that a thread is about to make; nothing: none, as far as that is
  // known. Errors: kGone.
  Result<std::optional<std::uint64_t>> system_call(ThreadId thread);

  // Makes sure where a stopped thread stands. Errors: kGone.
  Result<Engine::Stop> settle(RecordedThread& thread);
  // The newest `limit` records of a stopped thread. Errors: kGone.
  Result<ThreadSnapshot> snapshot(RecordedThread& thread, std::uint64_t limit = ~0ull);
  // The newest records that hold so many instructions at least, or all there are, and not many
  // more: what it takes does not grow with what is kept. Errors: kGone.
  Result<ThreadSnapshot> newest(RecordedThread& thread, std::uint64_t instructions);
  // The same history with the code that a debugger finds in memory.
  ThreadSnapshot with_code_in_memory(ThreadSnapshot snapshot);
  // Where a stopped thread stands in its history. Errors: kGone.
  Result<HistoryMark> mark(RecordedThread& thread);
  // What the debugger may see of it: since its `begin`. Sets `part` to kAll where there is no more.
  // Errors: kGone.
  Result<ThreadSnapshot> visible(RecordedThread& thread, Part& part);
  Result<ThreadSnapshot> visible(RecordedThread& thread) {
    Part all = Part::kAll;
    return visible(thread, all);
  }

  // The debugger is about to write registers of the thread.
  void registers_written(ThreadId thread);
  void memory_written(std::int32_t pid, Address address, std::uint64_t size_bytes);
  void executed(ThreadId thread, Address entry);
  void thread_gone(ThreadId thread);
  // Drops what is kept of threads that are there no more. In all-stop nobody tells of their end,
  // and their numbers come again.
  void drop_ended();
  // The same if one was made since the last call. REQUIRES: nobody walks through the threads.
  void drop_ended_if_any_was_made() {
    if (std::exchange(any_was_made_, false)) drop_ended();
  }
  void process_gone(std::int32_t pid);
  void forget_all();

 private:
  void keep(const RecordedThread& thread);

  Below& below_;
  Engine& engine_;
  StepEngine* step_;
  std::map<ThreadId, RecordedThread> threads_;
  std::uint64_t met_ = 0;
  bool any_was_made_ = false;
  RecordedThread* last_ = nullptr;  // found last
  KeptRecording* kept_ = nullptr;
};

}  // namespace tailtrace
