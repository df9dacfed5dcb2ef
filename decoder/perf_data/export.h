// Histories as a perf.data file that `perf script` decodes: whatever recorded them, they are
// written as Intel PT, beside the names of the files whose code it is.
//
// perf reads code out of files: what ran elsewhere (generated code, the vDSO), or in a file that is
// another one now, is a break in its trace. Where one file came in the place of another, perf is
// told when: then there are times in its file, which say no more than what comes before what, each
// thread behind the one before.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoder/history/history.h"
#include "decoder/perf_data/writer.h"
#include "decoder/symbols/code_phases.h"
#include "decoder/symbols/file_code.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace::perf {

class PerfDataExport {
 public:
  // The newest `instructions` of a thread.
  // Errors: kUsage when its trace would become too long, or there are too many files.
  Result<void> add(const History& history, const MappingsIn& mappings_in,
                   std::uint64_t instructions);

  Bytes finish() const {
    return writer_.finish(any_replaced_ ? WrittenTimes::kMoments : WrittenTimes::kNone);
  }

  // The files that could not be read: breaks in the traces.
  std::vector<Error> problems() const;

 private:
  Result<Bytes> show(const CodePhase& phase, const CodeImage& known,
                     const std::vector<Mapping>& mappings, ThreadId thread);
  bool believe(std::map<Address, WrittenMapping>& believed, const WrittenMapping& mapping);

  PerfDataWriter writer_{true};
  FileCode files_;
  std::uint64_t moment_ = 0;
  bool any_replaced_ = false;
  // What perf takes to be mapped: of a process, by end.
  std::map<std::int32_t, std::map<Address, WrittenMapping>> believed_;
};

}  // namespace tailtrace::perf
