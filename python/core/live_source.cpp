#include "python/core/live_source.h"

#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/mapping.h"
#include "plugin/engines/tasks.h"

namespace tailtrace::python {

ThreadSource live_source(ThreadSnapshot taken) {
  auto shared = std::make_shared<const ThreadSnapshot>(std::move(taken));
  ThreadSource source;
  source.thread = shared->thread;
  source.engine = shared->engine;
  source.name = name_of("", shared->thread);
  source.records = [shared]() -> Result<RecordSpan> {
    return RecordSpan{shared, shared->records, shared->first};
  };
  source.content =
      [shared, maps = process_maps(shared->thread.pid).value_or("")]() -> Result<OpenedThread> {
    return opened_thread({shared, maps, {}, perf_map_of(shared->thread.pid)});
  };
  return source;
}

}  // namespace tailtrace::python
