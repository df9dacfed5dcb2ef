#include "plugin/engines/qemu/qemu_engine.h"

#include <fmt/core.h>

#include <algorithm>

namespace tailtrace {
namespace {

// A ring that moves is looked at again a few times: most threads that move are just going to sleep.
constexpr int kMaxLooks = 4;

Address newest_target(const std::vector<BranchRecord>& records) {
  return records.empty() ? Address{} : records.back().to;
}

Epoch newest_epoch(const ThreadSnapshot& snapshot) {
  std::uint32_t changes = 0;
  for (const BranchRecord& r : snapshot.records)
    changes += r.kind == RecordKind::kCodeChange ? 1 : 0;
  return {snapshot.first_epoch.value + changes};
}

// The process's epochs that a thread's records pass through, oldest first.
std::vector<std::uint32_t> epochs_of(const std::vector<BranchRecord>& records,
                                     std::uint32_t newest) {
  std::vector<std::uint32_t> epochs{newest};
  for (auto it = records.rbegin(); it != records.rend(); ++it) {
    if (it->kind != RecordKind::kCodeChange) continue;
    newest -= std::min<std::uint32_t>(newest, it->extra);
    epochs.push_back(newest);
  }
  std::reverse(epochs.begin(), epochs.end());
  return epochs;
}

BranchRecord enable_at(Address to, std::uint64_t time) {
  return {{},
          to,
          time,
          0,
          RecordKind::kEnable,
          kFlagSynthetic,
          static_cast<std::uint16_t>(EdgeCause::kDebugger)};
}

// Leaves out what was executed before the thread stood at `start`.
void hide_before(const OpenRun& start, ThreadSnapshot& snapshot) {
  auto& records = snapshot.records;
  if (start.head < snapshot.first) return;  // overwritten already
  std::size_t at = start.head.value - snapshot.first.value;
  if (at >= records.size()) return;
  BranchRecord& next = records[at];
  std::uint64_t before = start.insns + (start.waits ? 0 : start.block_insns());
  bool left = !next.to.is_null() && next.from.value == start.block.last && next.insns == before;
  bool fell_through = start.block.next != kNoFallThrough && next.insns >= before;
  BranchRecord enable = enable_at(next.to, next.time);
  if (start.waits) {
    next.insns -= static_cast<std::uint32_t>(before);
    enable.to = {start.block.begin};
  } else if (!left && fell_through) {
    next.insns -= static_cast<std::uint32_t>(before);
    enable.to = {start.block.next};
  } else if (next.to.is_null()) {
    enable.to = next.from;
    next.insns = 0;
  } else {
    ++at;  // it led to where the thread stood
  }
  begin_with(snapshot, at, enable);
}

}  // namespace

Result<std::unique_ptr<QemuEngine>> QemuEngine::open(const std::string& path, Options options) {
  Result<ProcessFolder> folder = ProcessFolder::open(path);
  if (!folder) return fail(std::move(folder.error()));
  return std::unique_ptr<QemuEngine>(new QemuEngine(std::move(*folder), options));
}

Result<OpenRun> QemuEngine::open_run(const Ring& ring) const {
  const RingHeader& h = ring.header();
  OpenRun run;
  run.head = ring.head();
  run.insns = h.run_insns.load(std::memory_order_acquire);
  run.time = h.time;
  Result<RingBlock> block = folder_.open_block(ring);
  if (!block) return fail(std::move(block.error()));
  run.block = *block;
  run.waits = h.held_at.load(std::memory_order_acquire) != 0;
  run.is_whole = h.called_block.load(std::memory_order_acquire) == h.open_block.load() &&
                 h.called_head_bytes.load() == run.head.value * sizeof(BranchRecord) &&
                 h.called_run_insns.load() == run.insns;
  return run;
}

Result<QemuEngine::Look> QemuEngine::look_at(const Ring& ring, std::uint64_t limit) const {
  Look look;
  for (int i = 0; i < kMaxLooks && !look.is_still; ++i) {
    Result<OpenRun> before = open_run(ring);
    if (!before) return fail(std::move(before.error()));
    look.epoch = ring.header().epoch.load(std::memory_order_acquire);
    look.range = ring.newest(limit);
    Result<OpenRun> after = open_run(ring);
    if (!after) return fail(std::move(after.error()));
    look.run = *after;
    look.is_still = *before == *after && look.epoch == ring.header().epoch.load();
  }
  if (!look.is_still) {  // the run belongs to another moment than the records
    look.run.insns = 0;
    look.run.is_whole = false;
  }
  return look;
}

Result<ThreadSnapshot> QemuEngine::unclosed(const Ring& ring, Look look) {
  ThreadSnapshot snapshot;
  snapshot.thread = ring.thread();
  snapshot.engine = name();
  snapshot.first = look.range.first;
  snapshot.records = std::move(look.range.records);
  snapshot.complete = snapshot.first.value == 0;
  const std::vector<std::uint32_t> epochs = epochs_of(snapshot.records, look.epoch);
  auto code = folder_.code(epochs);
  if (!code) return fail(std::move(code.error()));
  snapshot.code = std::move(*code);
  snapshot.former_maps = folder_.former_maps(epochs);
  return snapshot;
}

Result<void> QemuEngine::start(ThreadId thread) {
  if (is_recording(thread)) return {};
  Result<const Ring*> ring = folder_.ring_of_new(thread.tid);
  if (!ring) return fail(std::move(ring.error()));
  Result<OpenRun> run = open_run(**ring);
  if (!run) return fail(std::move(run.error()));
  started_[thread.tid] = *run;
  return {};
}

Result<void> QemuEngine::stop(ThreadId thread) {
  if (started_.erase(thread.tid) != 0) return {};
  return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
}

bool QemuEngine::is_recording(ThreadId thread) const { return started_.count(thread.tid) != 0; }

Result<Position> QemuEngine::head(ThreadId thread) const {
  Result<const Ring*> ring = folder_.ring_of(thread.tid);
  if (!ring) return fail(std::move(ring.error()));
  return (*ring)->head();
}

// One that has gone meanwhile makes no threads.
void QemuEngine::set_thread_room(std::int32_t, std::optional<std::uint64_t> threads) {
  (void)folder_.set_thread_room(threads.value_or(kNoThreadLimit)).has_value();
}

Result<ThreadSnapshot> QemuEngine::snapshot(ThreadId thread, const Stop& stop,
                                            std::uint64_t limit) {
  auto started = started_.find(thread.tid);
  if (started == started_.end())
    return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
  Result<const Ring*> ring = folder_.ring_of(thread.tid);
  if (!ring) return fail(std::move(ring.error()));
  Result<Look> look = look_at(**ring, limit);
  if (!look) return fail(std::move(look.error()));
  OpenRun run = look->run;
  bool is_still = look->is_still;
  Result<ThreadSnapshot> result = unclosed(**ring, std::move(*look));
  if (!result) return result;
  Epoch epoch = newest_epoch(*result);
  Closing closing = is_still ? close_at_stop(run, stop, *result->code, epoch)
                             : close_anywhere(run, newest_target(result->records), *result->code,
                                              epoch, EdgeCause::kDebugger);
  result->records.insert(result->records.end(), closing.begin(), closing.end());
  if (!options_.since_start) hide_before(started->second, *result);
  return result;
}

EdgeCause QemuEngine::end_cause(const Ring& ring) {
  switch (ring.state()) {
    case RingState::kThreadExited:
      return EdgeCause::kThread;
    case RingState::kProcessExited:
      return EdgeCause::kProcess;
    case RingState::kReplaced:
    case RingState::kFollowed:
      return EdgeCause::kExec;
    default:
      break;
  }
  // Another thread may have ended the process or replaced its program.
  if (auto rings = folder_.rings())
    for (const Ring* other : *rings) {
      if (other->state() == RingState::kProcessExited) return EdgeCause::kProcess;
      if (other->state() >= RingState::kReplaced) return EdgeCause::kExec;
    }
  return folder_.is_alive() ? EdgeCause::kDebugger : EdgeCause::kSignal;
}

Result<ThreadSnapshot> QemuEngine::last_snapshot(ThreadId thread, std::uint64_t limit) {
  Result<const Ring*> ring = folder_.ring_of(thread.tid);
  if (!ring) return fail(std::move(ring.error()));
  bool has_ended = (*ring)->state() >= RingState::kThreadExited;
  Result<Look> look = look_at(**ring, limit);
  if (!look) return fail(std::move(look.error()));
  OpenRun run = look->run;
  Result<ThreadSnapshot> result = unclosed(**ring, std::move(*look));
  if (!result) return result;
  EdgeCause cause = end_cause(**ring);
  Closing closing = has_ended ? close_at_end(run, cause)
                              : close_anywhere(run, newest_target(result->records), *result->code,
                                               newest_epoch(*result), cause);
  result->records.insert(result->records.end(), closing.begin(), closing.end());
  return result;
}

Result<std::vector<QemuEngine::Thread>> QemuEngine::threads() {
  auto rings = folder_.rings();
  if (!rings) return fail(std::move(rings.error()));
  std::vector<Thread> threads;
  for (const Ring* ring : *rings)
    if (ring->thread().tid != 0)
      threads.push_back(
          {ring->thread(), ring->state(),
           static_cast<int>(ring->header().ended_by.load(std::memory_order_relaxed))});
  return threads;
}

}  // namespace tailtrace
