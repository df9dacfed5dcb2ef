#include "python/core/live_source.h"

#include <fmt/format.h>

#include "decoder/base/file.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/engines/tasks.h"

namespace tailtrace::python {
namespace {

constexpr std::size_t kMaxMaps_bytes = 16 << 20;

std::string maps_of(std::int32_t pid) {
  auto maps = read_file(fmt::format("/proc/{}/maps", pid), kMaxMaps_bytes);
  return maps ? std::string(as_text(*maps)) : std::string();
}

}  // namespace

ThreadSource live_source(ThreadSnapshot taken) {
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(taken));
  ThreadSource source;
  source.thread = shared->thread;
  source.engine = shared->engine;
  source.name = name_of("", shared->thread);
  source.records = [shared]() -> Result<RecordSpan> {
    return RecordSpan{shared, shared->records, shared->first};
  };
  source.content = [shared, maps = maps_of(shared->thread.pid)]() -> Result<OpenedThread> {
    return opened_thread({shared, maps, {}, perf_map_of(shared->thread.pid)});
  };
  return source;
}

}  // namespace tailtrace::python
