#include <fmt/format.h>
#include <sys/stat.h>

#include <mutex>

#include "plugin/engines/qemu/kept_maps.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "plugin/engines/qemu/session_folder.h"
#include "plugin/engines/qemu/session_format.h"
#include "python/core/source.h"

namespace tailtrace::python {
namespace {

// A process's engine, which all threads of the process read through.
struct SharedEngine {
  std::mutex lock;
  std::unique_ptr<QemuEngine> engine;
};

bool exists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0;
}

Result<OpenedThread> content_of(SharedEngine& shared, ThreadId thread) {
  std::lock_guard lock(shared.lock);
  Result<OpenedThread> opened = shared.engine->open_thread(thread, kRingMaxRecords);
  if (!opened) return opened;
  KeptMaps maps = kept_maps(shared.engine->folder());
  opened->frame.former_maps = maps_with_other_builds(opened->frame.former_maps, maps.modules);
  opened->maps = std::move(maps.text);
  opened->problems = std::move(maps.problems);
  opened->perf_map = shared.engine->folder().perf_map();
  return opened;
}

Result<void> add_process(const std::string& folder, std::vector<ThreadSource>& sources) {
  Result<std::unique_ptr<QemuEngine>> engine = QemuEngine::open(folder);
  if (!engine) return fail(std::move(engine.error()));
  auto shared = std::make_shared<SharedEngine>();
  shared->engine = std::move(*engine);
  Result<std::vector<const Ring*>> rings = shared->engine->folder().rings();
  if (!rings) return fail(std::move(rings.error()));
  // Nothing here tells of what is missing.
  const std::vector<Error>& damaged = shared->engine->folder().damaged();
  if (!damaged.empty()) return fail(damaged.front());
  bool alive = shared->engine->folder().is_alive();
  for (const Ring* ring : *rings) {
    ThreadSource source;
    source.thread = ring->thread();
    source.engine = shared->engine->name();
    source.live = alive && is_live(*ring);
    source.content = [shared, thread = source.thread] { return content_of(*shared, thread); };
    std::string path = fmt::format("{}/thread.{}.ring", folder, ring->header().slot);
    source.records = [shared, path]() -> Result<RecordSpan> {
      Result<Ring> opened = Ring::open(path);
      if (!opened) return fail(std::move(opened.error()));
      auto own = std::make_shared<const Ring>(std::move(*opened));
      return is_live(*own) ? view_written_ring(own) : view_ring(*own);
    };
    sources.push_back(std::move(source));
  }
  return {};
}

}  // namespace

Result<std::vector<ThreadSource>> open_session(const std::string& path) {
  std::vector<std::string> folders = {path};
  if (!exists(path + "/" + kProcessName)) {
    Result<std::vector<std::string>> found = process_folders(path);
    if (!found) return fail(std::move(found.error()));
    folders = std::move(*found);
  }
  if (folders.empty())
    return fail(ErrorCode::kBadInput, "cannot open " + path, "the folder holds no recording",
                "give it a session's folder, a saved history or a ring");
  std::vector<ThreadSource> sources;
  for (const std::string& folder : folders)
    if (auto ok = add_process(folder, sources); !ok) return fail(std::move(ok.error()));
  return sources;
}

}  // namespace tailtrace::python
