// ThreadRecorder: what records one thread, whichever hardware does it: it looks into its rings when
// asked, takes over what is new, and keeps it as records with stable positions.
//
// Threading: one thread at a time, as every Engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/bts/branch_flow.h"
#include "plugin/engines/engine.h"
#include "plugin/engines/perf/breakpoints.h"
#include "plugin/engines/perf/event.h"
#include "plugin/engines/perf/process_code.h"

namespace tailtrace::perf {

// What the user may choose; zeros and empty mean: the best that is here.
struct PerfConfig {
  EngineConfig records;            // how many records are kept of each thread
  std::uint64_t buffer_bytes = 0;  // of hardware trace, for each thread; a power of two
  bool kernel = false;             // kernel code too, where that is permitted
  bool trial = false;              // opened and mapped, to see whether it can be: never switched on

  // Intel PT.
  bool tsc = true;
  bool cyc = false;
  std::uint8_t cyc_threshold = 0;  // a packet for 2^(n - 1) cycles or more; 0: for each branch
  bool mtc = false;
  std::uint8_t mtc_period = 3;
  std::optional<std::uint8_t> psb_period;  // a decoder can start every 2 KiB << n
  bool ptwrite = false;
  bool event_trace = false;
  bool return_compression = true;
  // "filter 0x1000/0x200@/path/to/file"; empty: one that comes later (PerfEngine::reconfigure).
  // While none is there, nothing is recorded.
  std::vector<std::string> filters;

  // The trace goes on when the thread comes to the first, and pauses when it comes to the second:
  // hardware breakpoints, no stop (Linux 6.13 and later, and some before). Null: it comes later.
  std::optional<Address> resume_at;
  std::optional<Address> pause_at;

  // Hardware breakpoints whose hits are put into the history as records of kind kMarker; the slot
  // is the index here. The newest so many hits of each are held.
  std::vector<BreakpointSpec> markers;
  std::uint64_t marker_hits = 1024;

  // Last branch records: a sample every so many branches, each with the whole stack.
  std::uint64_t lbr_period = 4096;

  // Memory of a process as it would be without breakpoints; without it /proc is read.
  std::function<std::size_t(ThreadId, Address, std::span<std::uint8_t>)> read_memory;
};

// The code that a recorder reads with, shared by the threads of a process.
struct CodeInUse {
  std::shared_ptr<const CodeImage> image;
  std::vector<pt::EpochBegin> begins;  // of all epochs but the first, as far as times are known
  std::string former_maps = {};        // decoder/code/former_maps.h
  Epoch epoch() const { return image->newest(); }
};

class ThreadRecorder {
 public:
  virtual ~ThreadRecorder() = default;

  // Takes over what is new since the last time. `code` is that of now; what was executed since the
  // last time is read with it.
  virtual Result<void> refresh(const CodeInUse& code) = 0;

  // What is new in it, as PerfEngine::reconfigure has it.
  virtual Result<void> reconfigure(const PerfConfig&) { return {}; }

  // One past the newest record. REQUIRES: refreshed.
  virtual Position end() const = 0;

  // REQUIRES: refreshed with the same code. Fills in records, first, first_epoch and complete.
  virtual void fill(const Engine::Stop& stop, ThreadSnapshot& snapshot) = 0;

  // The buffer that was got, in bytes.
  virtual std::uint64_t buffer_bytes() const = 0;
  // Why it is not what was asked for; null when it is.
  virtual const std::optional<Error>& shortened() const = 0;
};

using Recorders = Result<std::unique_ptr<ThreadRecorder>>;

// The AUX area of intel_bts; else branch samples. `start` is where the thread stands now.
Recorders record_bts_area(Kernel& kernel, const PerfConfig& config, ThreadId thread,
                          std::optional<Address> start);
Recorders record_bts_samples(Kernel& kernel, const PerfConfig& config, ThreadId thread,
                             std::optional<Address> start);
Recorders record_lbr(Kernel& kernel, const PerfConfig& config, ThreadId thread);
Recorders record_pt(Kernel& kernel, const PerfConfig& config, ThreadId thread);

// Where a thread that does not run stands, as /proc shows it; nothing when it runs or may not be
// looked at.
std::optional<Address> pc_of(const std::string& root, ThreadId thread);

}  // namespace tailtrace::perf
