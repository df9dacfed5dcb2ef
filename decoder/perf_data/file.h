// PerfData: a perf.data file taken apart, in file or pipe form: how events were opened, the
// kernel's records by time, and the pieces of the AUX areas, all still in the file's bytes.
//
// Files are checked, not believed: what does not fit is an error or, where the rest can be used
// without it, a problem. PERF_DATA.md draws the format.
//
// Threading: immutable once made.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/perf/clock.h"
#include "decoder/perf/events.h"
#include "decoder/perf_data/format.h"

namespace tailtrace::perf {

// How an event was opened.
struct EventAttr {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  std::uint64_t sample_period = 0;
  std::uint64_t flags = 0;  // AttrFlags
  RecordFormat format;

  bool has_branches() const { return (format.sample_type & kSampleBranchStack) != 0; }
};

// A record of the kernel's, still unread.
struct RecordRef {
  std::uint64_t time_ns = 0;  // 0: it has none, as those that perf made up when it began
  std::uint32_t attr = 0;     // index
  ByteSpan bytes;
};

// A piece of an AUX area.
struct AuxPiece {
  std::uint32_t queue = 0;         // pieces of one area have the same
  std::int32_t tid = -1;           // whose it is, or the first of many; -1: of all
  std::int32_t cpu = -1;           // -1: of one thread
  std::uint64_t offset_bytes = 0;  // of everything ever written into the area
  ByteSpan bytes;
};

struct PerfData {
  std::string name;  // what errors call it
  std::vector<EventAttr> attrs;
  std::vector<RecordRef> records;  // side-band and samples with branch stacks, by time
  std::vector<AuxPiece> aux;       // in the file's order
  AuxtraceType auxtrace = kAuxtraceNone;
  std::vector<std::uint64_t> auxtrace_info;      // kInfoWords of them at most
  std::map<std::string, std::string> build_ids;  // of files, in hexadecimal
  std::string cpu_id;                            // "GenuineIntel,6,78,3"; empty: not known
  std::vector<Error> problems;
  std::vector<std::shared_ptr<const void>> owners;  // of the bytes

  // A word of the AUXTRACE_INFO; 0 where it has none.
  std::uint64_t info(std::size_t word) const {
    return word < auxtrace_info.size() ? auxtrace_info[word] : 0;
  }
  // From the processor's counter to the times of records; nothing where the file has none.
  std::optional<TimeConversion> clock() const;
  // What a record says. Errors: as parse_record.
  Result<ParsedRecord> parse(const RecordRef& record) const;
};

// What one file can make grow.
struct PerfDataLimits {
  std::size_t records = std::size_t{1} << 24;
  std::size_t aux_pieces = 1 << 20;
  std::size_t attrs = 1 << 16;
  std::size_t ids = 1 << 22;
  std::size_t build_ids = 1 << 20;
  std::uint64_t unpacked_bytes = 1ull << 30;
};

bool is_perf_data(ByteSpan begin);

// `bytes` must stay for as long as what is returned, or `owner` keeps them.
// Errors: kBadInput when it is no perf.data file of this machine's kind, or exceeds a limit.
Result<PerfData> parse_perf_data(ByteSpan bytes, const std::string& name,
                                 std::shared_ptr<const void> owner = {},
                                 const PerfDataLimits& limits = {});

// Errors: it cannot be read; as above.
Result<PerfData> read_perf_data(const std::string& path);

}  // namespace tailtrace::perf
