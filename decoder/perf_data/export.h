// Histories as a perf.data file that `perf script` decodes: whatever recorded them, they are
// written as Intel PT, beside the names of the files whose code it is.
//
// perf reads code out of files: what ran elsewhere (generated code, the vDSO), or in a file that is
// another one now, is a break in its trace.
//
// Threading: one thread at a time.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "decoder/history/history.h"
#include "decoder/perf_data/writer.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace::perf {

class PerfDataExport {
 public:
  PerfDataExport() : writer_(true) {}

  // The newest `instructions` of a thread. REQUIRES: `mappings`, its process's, are as parse_maps
  // orders them.
  // Errors: kUsage when its trace would become too long.
  Result<void> add(const History& history, const std::vector<Mapping>& mappings,
                   std::uint64_t instructions);

  Bytes finish() const { return writer_.finish(); }

  // The files that could not be read: breaks in the traces.
  const std::vector<Error>& problems() const { return problems_; }

 private:
  PerfDataWriter writer_;
  std::set<std::pair<std::int32_t, Address>> written_;  // mappings: process and begin
  std::vector<Error> problems_;                         // one of a file
};

}  // namespace tailtrace::perf
