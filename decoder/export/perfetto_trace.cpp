#include "decoder/export/perfetto_trace.h"

#include <vector>

#include "decoder/export/call_spans.h"
#include "decoder/export/protobuf_writer.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

// Numbers of fields, as PERFETTO.md lists them.
enum : unsigned { kPacket = 1 };
enum : unsigned {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kDefaults = 59,
  kTrackDescriptor = 60,
};
enum : unsigned { kClocks = 1, kClockId = 1, kClockTime = 2, kClockUnit_ns = 4 };
enum : unsigned { kDefaultClockId = 58 };
enum : unsigned { kTrackUuid = 1, kTrackName = 2, kProcess = 3, kThread = 4, kParent = 5 };
enum : unsigned { kProcessPid = 1, kProcessName = 6 };
enum : unsigned { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
enum : unsigned { kEventNames = 2, kNameIid = 1, kNameText = 2 };
enum : unsigned { kCategories = 22, kAnnotations = 4, kEventType = 9, kEventNameIid = 10 };
enum : unsigned { kEventTrack = 11, kAnnotationText = 6, kAnnotationName = 10 };

constexpr std::uint64_t kSliceBegin = 1, kSliceEnd = 2;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;
constexpr std::uint64_t kOurSequence = 1;
// Clocks from 64 on are a sequence's own; this one ticks once for an instruction. It is tied to the
// clock that viewers show, which is number 6, the time since boot.
constexpr std::uint64_t kInstructions = 64, kBootTime = 6, kTick_ns = 1000;

ProtobufWriter packet_with(std::uint64_t flags) {
  ProtobufWriter packet;
  packet.number(kSequence, kOurSequence);
  packet.number(kSequenceFlags, flags);
  return packet;
}

}  // namespace

void PerfettoTrace::put(const std::string& packet) {
  ProtobufWriter trace;
  trace.text(kPacket, packet);
  more_ = more_ && sink_(trace.bytes());
}

void PerfettoTrace::begin() {
  ProtobufWriter shown, ours, clocks;
  shown.number(kClockId, kBootTime);
  shown.number(kClockTime, 0);
  ours.number(kClockId, kInstructions);
  ours.number(kClockTime, 0);
  ours.number(kClockUnit_ns, kTick_ns);
  clocks.message(kClocks, shown);
  clocks.message(kClocks, ours);
  ProtobufWriter packet = packet_with(kStateCleared);
  ProtobufWriter defaults;
  defaults.number(kDefaultClockId, kInstructions);
  packet.message(kClockSnapshot, clocks);
  packet.message(kDefaults, defaults);
  put(packet.bytes());
}

void PerfettoTrace::add_track(ThreadId thread, std::uint64_t track) {
  auto [process, is_new] = process_tracks_.try_emplace(thread.pid, tracks_ + 1);
  if (is_new) {
    ++tracks_;
    ProtobufWriter about, descriptor;
    about.number(kProcessPid, static_cast<std::uint64_t>(thread.pid));
    about.text(kProcessName, "tailtrace: 1 us is 1 executed instruction");
    descriptor.number(kTrackUuid, process->second);
    descriptor.message(kProcess, about);
    ProtobufWriter packet = packet_with(kNeedsState);
    packet.message(kTrackDescriptor, descriptor);
    put(packet.bytes());
  }
  ProtobufWriter about, descriptor;
  about.number(kThreadPid, static_cast<std::uint64_t>(thread.pid));
  about.number(kThreadTid, static_cast<std::uint64_t>(thread.tid));
  about.text(kThreadName, "thread " + std::to_string(thread.tid));
  descriptor.number(kTrackUuid, track);
  descriptor.number(kParent, process->second);
  descriptor.message(kThread, about);
  ProtobufWriter packet = packet_with(kNeedsState);
  packet.message(kTrackDescriptor, descriptor);
  put(packet.bytes());
}

std::string PerfettoTrace::slice_begin(const CallSegment& segment, std::uint64_t time,
                                       std::uint64_t track) {
  ProtobufWriter packet = packet_with(kNeedsState);
  packet.number(kTimestamp, time);
  auto [name, is_new] = names_.try_emplace(span_name(segment), names_.size() + 1);
  if (is_new) {
    ProtobufWriter entry, interned;
    entry.number(kNameIid, name->second);
    entry.text(kNameText, name->first);
    interned.message(kEventNames, entry);
    packet.message(kInternedData, interned);
  }
  ProtobufWriter event;
  event.number(kEventType, kSliceBegin);
  event.number(kEventNameIid, name->second);
  event.number(kEventTrack, track);
  event.text(kCategories, segment.function == nullptr ? "gap" : "call");
  if (segment.function != nullptr && !segment.function->module.empty()) {
    ProtobufWriter module;
    module.text(kAnnotationName, "module");
    module.text(kAnnotationText, segment.function->module);
    event.message(kAnnotations, module);
  }
  packet.message(kTrackEvent, event);
  return packet.bytes();
}

std::string PerfettoTrace::slice_end(std::uint64_t time, std::uint64_t track) {
  ProtobufWriter packet = packet_with(kNeedsState);
  packet.number(kTimestamp, time);
  ProtobufWriter event;
  event.number(kEventType, kSliceEnd);
  event.number(kEventTrack, track);
  packet.message(kTrackEvent, event);
  return packet.bytes();
}

void PerfettoTrace::add(const CallHistory& calls, ThreadId thread) {
  const std::uint64_t track = ++tracks_;
  add_track(thread, track);
  std::vector<std::uint64_t> ends;  // of the calls that are open, the innermost last
  for (const CallSpan& span : call_spans(calls)) {
    for (; !ends.empty() && ends.back() <= span.first; ends.pop_back())
      put(slice_end(ends.back(), track));
    put(slice_begin(calls.at(span.segment), span.first, track));
    ends.push_back(span.last + 1);
    if (!more_) return;
  }
  for (; !ends.empty(); ends.pop_back()) put(slice_end(ends.back(), track));
}

}  // namespace tailtrace
