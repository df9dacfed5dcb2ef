// A snapshot on disk: a record stream (decoder/record/STREAM.md) with the records of a thread and
// all the code they ran, so that its history reads the same on another day or machine.
//
// Threading: functions without state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/history/snapshot.h"
#include "decoder/record/record_stream.h"

namespace tailtrace {

// Writes the snapshot, with only the code that its records ran, and of the vDSO all if some did.
// `maps` is what was mapped where, as /proc/PID/maps has it; may be empty. The snapshot's former
// maps are put behind it. Errors: kSystem, as when
// the disk is full; nothing is left behind then, and what was at `path` before is untouched.
Result<void> save_snapshot(
    const ThreadSnapshot& snapshot, std::string_view maps, const std::string& path,
    RecordStreamWriter::Packing packing = RecordStreamWriter::Packing::kZstd);

// The same without its records, for a reader that has them elsewhere. Whoever puts it beside these
// puts both on the disk.
Result<void> save_snapshot_frame(const ThreadSnapshot& snapshot, std::string_view maps,
                                 const std::string& path);

struct LoadedSnapshot {
  std::shared_ptr<const ThreadSnapshot> snapshot;
  std::string maps;
  std::vector<Error> problems;  // what of the file could not be read; gaps stand for it
  // Of the file in which the program named code that it generated (decoder/symbols/JIT.md); the
  // path is empty where there is none.
  std::string perf_map = {};
};

// Errors: as read_record_stream.
Result<LoadedSnapshot> load_snapshot(const std::string& path);

// The same for a stream that was read already.
LoadedSnapshot snapshot_of(RecordStream stream, const std::string& name);

}  // namespace tailtrace
