// OpenedThread: what is kept of a thread, opened but not read: what a History is made of.
//
// Threading: immutable once made; share it freely.
#pragma once

#include "decoder/history/history.h"
#include "decoder/history/snapshot_file.h"

namespace tailtrace {

struct OpenedThread {
  ThreadFrame frame;
  std::shared_ptr<const SegmentSource> source;
  std::string maps;             // what was mapped where, as /proc/PID/maps has it; may be empty
  std::vector<Error> problems;  // what of it could not be read; gaps stand for it
  std::string perf_map;         // the path of the process's (decoder/symbols/JIT.md); may be empty
  // Where the thread stood, and where each call that was open goes on, innermost first; empty: not
  // known.
  std::vector<Address> stack;
};

// The newest `limit_records` of records that lie in memory, in place for as long as `owner` lives.
OpenedThread records_in_place(ThreadFrame frame, std::shared_ptr<const void> owner,
                              std::span<const BranchRecord> records,
                              std::uint64_t limit_records = ~0ull);

// The same of a snapshot's.
OpenedThread opened_thread(LoadedSnapshot loaded, std::uint64_t limit_records = ~0ull);

}  // namespace tailtrace
