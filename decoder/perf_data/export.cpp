#include "decoder/perf_data/export.h"

#include <fmt/format.h>

#include "decoder/history/symbolizer.h"
#include "decoder/pt/synthesis/synthesis.h"

namespace tailtrace::perf {
namespace {

// As `ps` would show the process: by its program, which is mapped below its libraries.
std::string name_of(const std::vector<Mapping>& mappings) {
  return mappings.empty() ? "program" : std::string(base_name(mappings.front().path));
}

}  // namespace

// Whether it was not believed already.
bool PerfDataExport::believe(std::map<Address, WrittenMapping>& believed,
                             const WrittenMapping& mapping) {
  const Address end = mapping.begin + mapping.size_bytes;
  auto other = believed.upper_bound(mapping.begin);
  if (other != believed.end() && other->second == mapping) return false;
  while (other != believed.end() && other->second.begin < end) {
    any_replaced_ = true;
    other = believed.erase(other);
  }
  believed[end] = mapping;
  return true;
}

Result<Bytes> PerfDataExport::show(const CodePhase& phase, const CodeImage& known,
                                   const std::vector<Mapping>& mappings, ThreadId thread) {
  CodeImage seen;
  std::vector<WrittenMapping> news;
  for (const FileCode::Piece& piece :
       files_.add_to(seen, executed_files(mappings, phase.records))) {
    const Mapping& at = piece.mapping;
    WrittenMapping written{at.begin, at.end - at.begin, at.file_offset_bytes,
                           from_hex(piece.build_id).value_or(Bytes()), at.file()};
    if (believe(believed_[thread.pid], written)) news.push_back(std::move(written));
  }
  writer_.add_mappings(thread.pid, news, moment_);
  pt::SynthesisOptions options;
  options.newest_code = true;
  return pt::synthesize(phase.records, with_newest(known, seen), phase.first, options);
}

Result<void> PerfDataExport::add(const History& history, const MappingsIn& mappings_in,
                                 std::uint64_t instructions) {
  ThreadSnapshot snapshot = history.snapshot();
  const std::string name = name_of(executed_files(mappings_in(kNewestEpoch), snapshot.records));
  std::vector<WrittenTrace> trace;
  for (const CodePhase& phase : code_phases(std::move(snapshot), instructions)) {
    if (++moment_ > PerfDataWriter::kMaxMoment)
      return fail(ErrorCode::kUsage, "cannot write so many threads and libraries as perf.data",
                  fmt::format("{} times another one can begin", PerfDataWriter::kMaxMoment),
                  "--thread=TID, or --range=-N,-1");
    Result<Bytes> bytes =
        show(phase, *history.frame().code, mappings_in(phase.first), history.frame().thread);
    if (!bytes) return fail(std::move(bytes.error()));
    trace.push_back({moment_, std::move(*bytes)});
  }
  writer_.add_thread(history.frame().thread, name, std::move(trace));
  return {};
}

std::vector<Error> PerfDataExport::problems() const {
  std::vector<Error> problems = files_.problems();
  for (Error& problem : problems) problem.now = "the trace has breaks there";
  return problems;
}

}  // namespace tailtrace::perf
