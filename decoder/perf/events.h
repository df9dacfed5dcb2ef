// What the records in a data ring say: side-band events (which code was mapped, which thread ran,
// what was lost) and samples. Everything is checked against the record's size; a field that the
// record is too short for makes it an error, never a guess.
//
// Threading: pure functions over bytes; results own what they hold.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/perf/abi.h"

namespace tailtrace::perf {

// How an event was opened, as far as its records depend on it.
struct RecordFormat {
  std::uint64_t sample_type = 0;         // SampleBits
  bool sample_id_all = false;            // every record ends with who, when and where
  std::uint64_t branch_sample_type = 0;  // BranchSampleBits
  std::uint64_t sample_regs_user = 0;    // one bit a register, numbered as the kernel does
};

// The trailer of records other than samples.
struct SampleId {
  std::optional<ThreadId> thread;
  std::optional<std::uint64_t> time_ns;  // of perf's clock, unless attr.use_clockid says another
  std::optional<std::uint64_t> id;
  std::optional<std::uint32_t> cpu;
};

struct MmapEvent {
  ThreadId thread;
  Address address;
  std::uint64_t size_bytes = 0;
  std::uint64_t offset_bytes = 0;  // in the file
  std::uint32_t protection = 0;    // PROT_*; 0 when the record is an old MMAP
  std::uint32_t flags = 0;         // MAP_*
  Bytes build_id;                  // empty: the record names device and inode
  std::uint32_t major = 0, minor = 0;
  std::uint64_t inode = 0;
  std::string path;  // "//anon", "[vdso]", ... are not files
};
struct CommEvent {
  ThreadId thread;
  bool is_exec = false;
  std::string name;
};
// A thread begins (it is `thread`, made by `parent`) or ends.
struct TaskEvent {
  bool begins = false;
  ThreadId thread;
  ThreadId parent;
  std::uint64_t time_ns = 0;
};
struct SwitchEvent {
  bool out = false;
  bool preempted = false;  // only out
  // The other thread, where the event watches a CPU: the next one (out) or the previous one (in).
  std::optional<ThreadId> other;
};
// The hardware begins to trace this thread; once per event and thread.
struct ItraceStartEvent {
  ThreadId thread;
};
struct AuxEvent {
  std::uint64_t offset_bytes = 0;  // overwriting: the new head; else where the new bytes begin
  std::uint64_t size_bytes = 0;    // overwriting: of the whole area
  std::uint64_t flags = 0;         // AuxFlags
};
struct LostEvent {
  std::uint64_t count = 0;
  bool samples_only = false;  // lost by the hardware's driver, not for want of space
};
struct ThrottleEvent {
  bool begins = false;
  std::uint64_t time_ns = 0;
};
struct BranchEntry {
  Address from;
  Address to;
  bool mispredicted = false;
  bool predicted = false;  // neither: the hardware does not say
  bool in_transaction = false;
  bool aborted = false;
  std::uint16_t cycles = 0;  // since the branch before; 0 unknown
};
struct Sample {
  std::optional<std::uint64_t> id;
  std::optional<Address> ip;
  std::optional<ThreadId> thread;
  std::optional<std::uint64_t> time_ns;
  std::optional<Address> address;
  std::optional<std::uint32_t> cpu;
  std::optional<std::uint64_t> period;
  std::optional<std::uint64_t> count;    // of the event with this sample; read_format is 0
  std::vector<BranchEntry> branches;     // newest first, as the hardware has them
  std::vector<std::uint64_t> registers;  // those asked for, in the order of their numbers
};
// A record of a type that this reader does not know.
struct OtherEvent {};

using EventBody = std::variant<OtherEvent, MmapEvent, CommEvent, TaskEvent, SwitchEvent,
                               ItraceStartEvent, AuxEvent, LostEvent, ThrottleEvent, Sample>;

struct ParsedRecord {
  std::uint32_t type = 0;
  SampleId id;  // empty for samples and without sample_id_all
  EventBody body;
};

// Branch stacks are never longer on any hardware known; more is an error.
constexpr std::uint64_t kMaxBranchEntries = 1024;

// What one record, with its header, says.
// Errors: kBadInput for a record that is too short, or a sample with fields that are not read here.
Result<ParsedRecord> parse_record(ByteSpan record, const RecordFormat& format);

}  // namespace tailtrace::perf
