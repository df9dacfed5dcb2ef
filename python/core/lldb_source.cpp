#include <fmt/format.h>

#include <algorithm>

#include "decoder/bundle/lldb_history.h"
#include "decoder/symbols/elf_file.h"
#include "python/core/source.h"

namespace tailtrace::python {
namespace {

constexpr std::uint64_t kPage_bytes = 4096;

// Where a module's segments were, as /proc/PID/maps has it.
std::string maps_of(const LldbModule& module) {
  Result<ElfFile> file = ElfFile::open(module.path);
  if (!file) return {};
  const std::vector<ElfSegment>& segments = file->segments();
  if (segments.empty()) return {};
  std::uint64_t lowest = ~0ull;
  for (const ElfSegment& segment : segments) lowest = std::min(lowest, segment.address);
  std::uint64_t bias = module.load_address.value - (lowest & ~(kPage_bytes - 1));
  std::string text;
  for (const ElfSegment& segment : segments) {
    std::uint64_t slack = segment.file_offset_bytes % kPage_bytes;
    std::uint64_t begin = segment.address - slack + bias;
    std::uint64_t end = (begin + slack + segment.size_bytes + kPage_bytes - 1) & ~(kPage_bytes - 1);
    text += fmt::format("{:x}-{:x} r-xp {:08x} 00:00 0 {}\n", begin, end,
                        segment.file_offset_bytes - slack, module.path);
  }
  return text;
}

Result<ThreadContent> content_of(const LldbBundle& bundle, const LldbProcess& process,
                                 const LldbThread& thread) {
  Result<LldbHistory> loaded = load_lldb_thread(bundle, process, thread);
  if (!loaded) return fail(std::move(loaded.error()));
  std::string maps;
  for (const LldbModule& module : process.modules) maps += maps_of(module);
  return ThreadContent{std::move(loaded->snapshot), std::move(maps)};
}

}  // namespace

Result<std::vector<ThreadSource>> open_lldb_bundle(const std::string& path) {
  Result<LldbBundle> read = read_lldb_bundle(path);
  if (!read) return fail(std::move(read.error()));
  auto bundle = std::make_shared<const LldbBundle>(std::move(*read));
  std::vector<ThreadSource> sources;
  for (const LldbProcess& process : bundle->processes)
    for (const LldbThread& thread : process.threads) {
      ThreadSource source;
      source.thread = thread.thread;
      source.engine = "pt";
      source.content = [bundle, &process, &thread] { return content_of(*bundle, process, thread); };
      sources.push_back(std::move(source));
    }
  if (sources.empty())
    return fail(ErrorCode::kBadInput, "cannot open " + path, "the bundle has no thread");
  return sources;
}

}  // namespace tailtrace::python
