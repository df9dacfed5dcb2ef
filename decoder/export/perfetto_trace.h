// Perfetto trace: calls as a timeline in Perfetto's own form, a stream of TracePackets with track
// events (protos/perfetto/trace/trace_packet.proto in Perfetto's sources). PERFETTO.md has the
// fields that are used.
//
// The clock is the count of executed instructions, one for a microsecond, as the trace itself says:
// recorders do not know the time of each call.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>

#include "decoder/export/sinks.h"
#include "decoder/history/calls/calls.h"

namespace tailtrace {

class PerfettoTrace {
 public:
  explicit PerfettoTrace(ByteSink sink) : sink_(std::move(sink)) {}

  // A document: begin(), then threads one after the other.
  void begin();
  void add(const CallHistory& calls, ThreadId thread);

 private:
  void put(const std::string& packet);
  void add_track(ThreadId thread, std::uint64_t track);
  std::string slice_begin(const CallSegment& segment, std::uint64_t time, std::uint64_t track);
  std::string slice_end(std::uint64_t time, std::uint64_t track);

  ByteSink sink_;
  bool more_ = true;
  std::uint64_t tracks_ = 0;
  std::map<std::string, std::uint64_t> names_;  // that were told, and their numbers
  std::map<std::int32_t, std::uint64_t> process_tracks_;
};

}  // namespace tailtrace
