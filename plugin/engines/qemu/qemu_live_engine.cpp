#include "plugin/engines/qemu/qemu_live_engine.h"

#include <limits>

namespace tailtrace {

Error QemuLiveEngine::closed() const {
  return {ErrorCode::kGone, "there is no history", "no program runs", {}, {}};
}

Result<void> QemuLiveEngine::open(const std::string& process_folder) {
  auto engine = QemuEngine::open(process_folder, {.since_start = true});
  if (!engine) return fail(std::move(engine.error()));
  engine_ = std::move(*engine);
  elders_.clear();
  for (std::int32_t tid : started_)
    if (auto started = engine_->start({0, tid});
        !started && started.error().code != ErrorCode::kGone)
      return started;
  return {};
}

void QemuLiveEngine::close() {
  engine_.reset();
  started_.clear();
  elders_.clear();
}

bool QemuLiveEngine::has_executed(Address begin, Address end) {
  if (!engine_) return false;
  const auto code = engine_->folder().code({std::numeric_limits<std::uint32_t>::max()});
  return code && (*code)->ever_knew(begin, end);
}

Result<void> QemuLiveEngine::start(ThreadId thread) {
  if (!engine_) return fail(closed());
  if (started_.empty()) {
    auto threads = engine_->threads();
    if (!threads) return fail(std::move(threads.error()));
    for (const QemuEngine::Thread& t : *threads) elders_.insert(t.thread.tid);
  }
  if (auto started = engine_->start(thread); !started) return started;
  started_.insert(thread.tid);
  return {};
}

Result<void> QemuLiveEngine::stop(ThreadId thread) {
  started_.erase(thread.tid);
  if (started_.empty()) elders_.clear();
  return engine_ ? engine_->stop(thread) : fail(closed());
}

Result<Position> QemuLiveEngine::head(ThreadId thread) const {
  if (!engine_) return fail(closed());
  return engine_->head(thread);
}

Result<ThreadSnapshot> QemuLiveEngine::snapshot(ThreadId thread, const Stop& stop,
                                                std::uint64_t limit) {
  if (!engine_) return fail(closed());
  return engine_->snapshot(thread, stop, limit);
}

}  // namespace tailtrace
