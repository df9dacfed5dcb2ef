// Snapshot: what a stop yields. Records of one thread in order, oldest first, and the code they
// ran.
//
// Everything to the right of a Snapshot is a pure function of it: tests, importers and benchmarks
// enter here, and need neither a process nor a debugger.
//
// Threading: immutable once made; share it freely.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/record/branch_record.h"
#include "decoder/record/ring.h"

namespace tailtrace {

// What there is to know of a thread's records beside the records.
struct ThreadFrame {
  ThreadId thread;
  std::string engine;  // "qemu", "step", ...

  // Of the oldest record. Positions are stable: the same record has the same position in every
  // snapshot of its thread.
  Position first;

  // True when nothing older than `first` was ever written: the history begins where recording did.
  bool complete = false;

  // The code epoch of records before the first kCodeChange among them.
  Epoch first_epoch;
  std::shared_ptr<const CodeImage> code;

  // Files that were executed and were gone by then, as decoder/code/former_maps.h has them.
  std::string former_maps = {};
};

struct ThreadSnapshot : ThreadFrame {
  // The last record is a kDisable made by the reader (kFlagSynthetic) where the thread stands: its
  // `from` is the instruction to be executed next.
  std::vector<BranchRecord> records;

  Position end() const { return {first.value + records.size()}; }
};

// How many records at its end are in no ring: they close it where the thread stands.
std::size_t closing_records(const ThreadSnapshot& snapshot);

// Leaves out the `count` oldest records. REQUIRES: it has as many.
void drop_oldest(ThreadSnapshot& snapshot, std::size_t count);

// Puts an opening record in the place of the `count` oldest: the history begins there. The others
// stay where they are, if any is left out. REQUIRES: it has as many.
void begin_with(ThreadSnapshot& snapshot, std::size_t count, const BranchRecord& opening);

// Leaves out all but the `limit` newest records.
void keep_newest(ThreadSnapshot& snapshot, std::uint64_t limit);

}  // namespace tailtrace
