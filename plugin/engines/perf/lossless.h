// Lossless: everything that a thread does goes into a file, as long as somebody drains the buffer
// fast enough. Where nobody did, the trace has a hole, which is told and becomes a gap.
//
// This is the other one of the two models: the history ring overwrites its oldest contents and asks
// nothing of anybody while the thread runs.
//
// Threading: one thread at a time; the recorded thread runs meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/perf/aux_area.h"
#include "decoder/pt/decoder.h"
#include "plugin/engines/perf/aux_event.h"
#include "plugin/engines/perf/perf_engine.h"

namespace tailtrace::perf {

class Lossless {
 public:
  // Records a thread with Intel PT or the area of Intel BTS into a new file. `config.buffer_bytes`
  // is what lies between the hardware and the file; markers and triggers are the history ring's.
  // Errors: all that explain() tells; kUsage for last branch records, which are a tail by nature;
  // kSystem for the file.
  static Result<Lossless> start(Kernel& kernel, Hardware hardware, const PerfConfig& config,
                                ThreadId thread, const std::string& path);

  // Takes over filters that have come since (PerfEngine::reconfigure).
  Result<void> reconfigure(const PerfConfig& config);

  // Waits until a quarter of the buffer is full, the thread ended, or the time is over (-1: never).
  Result<void> wait(int timeout_ms);
  // Moves into the file what is there. Returns how many bytes.
  Result<std::uint64_t> drain();

  // Whether the reader keeps up.
  struct Progress {
    std::uint64_t written_bytes = 0;
    std::uint64_t buffer_bytes = 0;
    std::uint64_t fullest_bytes = 0;  // what waited in the buffer at the worst drain
    // Places where the trace is not whole. A history shows as many gaps or fewer: holes between
    // which no whole instruction was recorded are one gap.
    std::uint64_t holes = 0;
  };
  const Progress& progress() const { return progress_; }
  // Why the buffer is smaller than it should be, and how large; nothing when it is not.
  const std::optional<Error>& shortened() const { return event_.shortened(); }
  // Nothing as long as all is well; else that data was lost, or is about to be, and what to do.
  std::optional<Error> backpressure() const;

  // The newest `limit` records of all that was recorded, of a thread that stands at `pc`.
  Result<ThreadSnapshot> snapshot(Address pc, std::uint64_t limit);

 private:
  // A hole, by the bytes of the file before it.
  struct Hole {
    std::uint64_t offset_bytes = 0;
    std::uint64_t flags = 0;
  };

  Lossless(Event event, Hardware hardware, ThreadId thread, std::string path, UniqueFd file);
  void put_hole(std::uint64_t offset, std::uint64_t flags);
  Result<void> take_stretches();
  Result<void> write(const AuxView& stretch);
  Result<void> take_area();
  std::uint64_t least_room() const;
  void decode_pt(ByteSpan trace, const CodeImage& code, Address pc, std::uint64_t limit,
                 ThreadSnapshot& snapshot) const;
  void decode_bts(ByteSpan records, const CodeImage& code, Address pc, std::uint64_t limit,
                  ThreadSnapshot& snapshot) const;

  Event event_;
  Hardware hardware_;
  ThreadId thread_;
  std::string path_;
  UniqueFd file_;
  std::unique_ptr<ProcessCode> code_;
  std::optional<Address> start_;
  pt::DecoderConfig decoder_;
  std::uint64_t ring_tail_ = 0, aux_tail_ = 0;
  bool cut_ = false;  // the kernel switched the event off for want of space
  std::vector<Hole> holes_;
  Progress progress_;
};

}  // namespace tailtrace::perf
