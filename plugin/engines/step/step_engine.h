// StepEngine: records what single steps of a debugger's server show.
//
// The engine steps nothing itself: whoever controls the process tells it where a thread was before
// and after each step. It is exact, works wherever a debugger works, and is slow.
//
// Threading: one thread at a time, as every Engine.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "plugin/engines/engine.h"
#include "plugin/engines/step/live_code.h"

namespace tailtrace {

class StepEngine final : public Engine {
 public:
  // Reads memory of a thread's process as it would be without breakpoints. Returns how much of it.
  using ReadMemory = std::function<std::size_t(ThreadId, Address, std::span<std::uint8_t>)>;

  // Rings are made in `folder`, and unlinked at once.
  StepEngine(std::string folder, EngineConfig config, ReadMemory read_memory);
  ~StepEngine() override;

  // The rings of threads started from now on.
  void configure(EngineConfig config) { config_ = config; }

  std::string_view name() const override { return "step"; }
  Result<void> start(ThreadId thread) override;
  Result<void> stop(ThreadId thread) override;
  bool is_recording(ThreadId thread) const override;
  bool can_mark_stops() const override { return true; }
  Result<Position> head(ThreadId thread) const override;
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override;

  // A step of a recorded thread took it from `before` to `after`; `signal` is the signal that it
  // was resumed with (the system's number), 0 for none. Steps of other threads are ignored.
  // False when a trap reported there need not be the end of the step: nothing was executed, or a
  // system call was, which may have raised it.
  bool stepped(ThreadId thread, Address before, Address after, int signal);
  // A step of a string instruction that repeats itself is one round of it. With so many to go it is
  // worth while to let the thread run up to where the instruction ends, and to tell of that.
  static constexpr std::uint64_t kManyRounds = 64;
  // The instruction that a recorded thread would execute there now.
  std::optional<Instruction> instruction_at(ThreadId thread, Address address);
  bool is_in_vdso(ThreadId thread, Address address) { return code_of(thread).is_in_vdso(address); }
  std::span<const FormerMaps::Range> stable_code(ThreadId thread, Address pc) {
    return code_of(thread).stable_code(pc);
  }
  // The debugger wrote the pc.
  void moved(ThreadId thread, Address before, Address after);
  // The debugger wrote memory.
  void memory_written(std::int32_t pid, Address address, std::uint64_t size_bytes);
  // The process of the thread executed another program, which begins at `entry`. History restarts.
  void replaced(ThreadId thread, Address entry);
  // What was recorded of a thread that is gone is dropped.
  void thread_gone(ThreadId thread);
  void process_gone(std::int32_t pid);

 private:
  struct Recording;

  Recording* find(ThreadId thread);
  LiveCode& code_of(ThreadId thread);
  bool follow(Recording& recording, Address before, Address after, int signal);
  bool aborted(Recording& recording, const Instruction& insn, Address after);
  void restart(Recording& recording, Address pc, EdgeCause why);
  void renew_code(ThreadId thread, EdgeCause why);
  void note_epochs(std::int32_t pid, const LiveCode& code, Epoch before);

  std::string folder_;
  EngineConfig config_;
  ReadMemory read_memory_;
  std::unordered_map<ThreadId, std::unique_ptr<Recording>> recordings_;
  Recording* last_ = nullptr;  // of the thread that was stepped last
  std::map<std::int32_t, std::unique_ptr<LiveCode>> code_;
  std::uint32_t made_ = 0;
};

}  // namespace tailtrace
