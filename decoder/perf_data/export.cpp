#include "decoder/perf_data/export.h"

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/history/symbolizer.h"
#include "decoder/pt/synthesis/synthesis.h"
#include "decoder/symbols/elf_file.h"

namespace tailtrace::perf {
namespace {

// The code that perf will see, and where it will look for it.
struct SeenCode {
  CodeImage image;
  std::vector<WrittenMapping> mappings;
  std::vector<Error> problems;
};

// Those that branches came from or went to, whatever the map says of them: a program under an
// emulator executes what the emulator only reads.
std::vector<Mapping> executed(const std::vector<Mapping>& mappings,
                              std::span<const BranchRecord> records) {
  std::vector<bool> is_used(mappings.size());
  auto use = [&](Address address) {
    auto after = std::upper_bound(mappings.begin(), mappings.end(), address,
                                  [](Address a, const Mapping& m) { return a < m.begin; });
    if (after != mappings.begin() && address < std::prev(after)->end)
      is_used[static_cast<std::size_t>(std::prev(after) - mappings.begin())] = true;
  };
  for (const BranchRecord& record : records) {
    use(record.from);
    use(record.to);
  }
  std::vector<Mapping> used;
  for (std::size_t i = 0; i < mappings.size(); ++i)
    if (is_used[i] && mappings[i].has_file()) used.push_back(mappings[i]);
  return used;
}

SeenCode seen_code(const std::vector<Mapping>& mappings) {
  SeenCode seen;
  for (const Mapping& mapping : mappings) {
    auto file = MappedFile::open(mapping.path);
    auto elf = file ? ElfFile::open(mapping.path) : fail(std::move(file.error()));
    if (!elf && elf.error().code != ErrorCode::kBadInput) {
      Error& problem = seen.problems.emplace_back(std::move(elf.error()));
      problem.what = "cannot read the code of " + mapping.path;
      problem.now = "the trace has breaks there";
      continue;
    }
    if (file->bytes().size() <= mapping.file_offset_bytes) continue;
    auto owner = std::make_shared<const MappedFile>(std::move(*file));
    ByteSpan code = owner->bytes().subspan(mapping.file_offset_bytes);
    code = code.first(std::min<std::uint64_t>(code.size(), mapping.end - mapping.begin));
    if (!seen.image.add(mapping.begin, code, owner)) continue;
    auto id = elf ? from_hex(elf->build_id()) : std::nullopt;
    seen.mappings.push_back({mapping.begin, mapping.end - mapping.begin, mapping.file_offset_bytes,
                             id.value_or(Bytes()), mapping.path});
  }
  return seen;
}

// As `ps` would show the process: by its program, which is mapped below its libraries.
std::string name_of(const std::vector<Mapping>& mappings) {
  return mappings.empty() ? "program" : std::string(base_name(mappings.front().path));
}

}  // namespace

Result<void> PerfDataExport::add(const History& history, const std::vector<Mapping>& mappings,
                                 std::uint64_t instructions) {
  const ThreadSnapshot snapshot = history.snapshot();
  const std::vector<Mapping> used = executed(mappings, snapshot.records);
  SeenCode seen = seen_code(used);
  for (Error& problem : seen.problems)
    if (std::ranges::none_of(problems_, [&](const Error& e) { return e.what == problem.what; }))
      problems_.push_back(std::move(problem));
  pt::SynthesisOptions options;
  options.newest_code = true;
  options.newest_instructions = instructions;
  auto trace = pt::synthesize(snapshot.records, seen.image, snapshot.first_epoch, options);
  if (!trace) return fail(std::move(trace.error()));
  std::erase_if(seen.mappings, [&](const WrittenMapping& mapping) {
    return !written_.insert({snapshot.thread.pid, mapping.begin}).second;
  });
  writer_.add_mappings(snapshot.thread.pid, seen.mappings);
  writer_.add_thread(snapshot.thread, name_of(used), *trace);
  return {};
}

}  // namespace tailtrace::perf
