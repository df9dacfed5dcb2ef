// BranchKeeper: what keeps the newest branches of the threads that a recorder follows: the
// processor, or single steps that the recorder makes.
//
// Threading: one thread at a time, which is the program's tracer.
#pragma once

#include <memory>
#include <optional>

#include "plugin/engines/engine.h"
#include "plugin/engines/perf/perf_engine.h"

namespace tailtrace {

class BranchKeeper {
 public:
  virtual ~BranchKeeper() = default;

  // A thread that stands. Errors: as Engine::start and TraceProvider::start.
  virtual Result<void> begins(ThreadId thread) = 0;
  virtual void ends(ThreadId thread) = 0;
  // Its process executes another program, which begins at `entry`; it has no other thread.
  virtual void replaced(ThreadId, Address /*entry*/) {}
  // Of a thread that stands.
  virtual Result<ThreadSnapshot> snapshot(ThreadId thread, const Engine::Stop& stop) = 0;

  // Whether it has to be told of every instruction.
  virtual bool needs_steps() const { return false; }
  // As StepEngine::stepped.
  virtual void stepped(ThreadId, Address /*before*/, Address /*after*/, int /*signal*/) {}
  // As StepEngine::instruction_at.
  virtual std::optional<Instruction> instruction_at(ThreadId, Address) { return std::nullopt; }

  virtual std::vector<Error> take_remarks() { return {}; }
};

// By the processor. `buffer_bytes` of trace for each thread.
std::unique_ptr<BranchKeeper> keep_by_hardware(perf::Hardware hardware, std::uint64_t buffer_bytes);

// By steps. Errors: there is no place for its rings.
Result<std::unique_ptr<BranchKeeper>> keep_by_steps(std::uint64_t ring_records);

// Reads the memory of a process. Returns how many bytes could be read.
std::size_t read_process_memory(std::int32_t pid, Address address, std::span<std::uint8_t> out);

}  // namespace tailtrace
