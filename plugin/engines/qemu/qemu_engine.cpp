#include "plugin/engines/qemu/qemu_engine.h"

#include <fmt/core.h>

#include <algorithm>

#include "decoder/record/ring_view.h"

namespace tailtrace {
namespace {

// A ring that moves is looked at again a few times: most threads that move are just going to sleep.
constexpr int kMaxLooks = 4;

Address newest_target(std::span<const BranchRecord> records) {
  return records.empty() ? Address{} : records.back().to;
}

// The process's epochs that a thread's records pass through, oldest first. What is older than the
// first change is not looked at.
std::vector<std::uint32_t> epochs_of(std::span<const BranchRecord> records, std::uint32_t newest) {
  std::vector<std::uint32_t> epochs{newest};
  for (auto it = records.rbegin(); newest != 0 && it != records.rend(); ++it) {
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

bool has_ended(const Ring& ring) { return ring.state() >= RingState::kThreadExited; }

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

Result<QemuEngine::Framed> QemuEngine::frame_of(const Ring& ring, Position first,
                                                std::span<const BranchRecord> records,
                                                std::uint32_t epoch) {
  Framed framed;
  framed.frame.thread = ring.thread();
  framed.frame.engine = name();
  framed.frame.first = first;
  framed.frame.complete = first.value == 0;
  const std::vector<std::uint32_t> epochs = epochs_of(records, epoch);
  auto code = folder_.code(epochs);
  if (!code) return fail(std::move(code.error()));
  framed.frame.code = std::move(*code);
  framed.frame.former_maps = folder_.former_maps(epochs);
  framed.newest = {static_cast<std::uint32_t>(epochs.size() - 1)};
  return framed;
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
  std::vector<BranchRecord>& records = look->range.records;
  auto framed = frame_of(**ring, look->range.first, records, look->epoch);
  if (!framed) return fail(std::move(framed.error()));
  const CodeImage& code = *framed->frame.code;
  Closing closing = look->is_still ? close_at_stop(look->run, stop, code, framed->newest)
                                   : close_anywhere(look->run, newest_target(records), code,
                                                    framed->newest, EdgeCause::kDebugger);
  records.insert(records.end(), closing.begin(), closing.end());
  ThreadSnapshot snapshot{std::move(framed->frame), std::move(records)};
  if (!options_.since_start) hide_before(started->second, snapshot);
  return snapshot;
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
  Result<Look> look = look_at(**ring, limit);
  if (!look) return fail(std::move(look.error()));
  std::vector<BranchRecord>& records = look->range.records;
  auto framed = frame_of(**ring, look->range.first, records, look->epoch);
  if (!framed) return fail(std::move(framed.error()));
  const Closing closing = last_closing(**ring, look->run, newest_target(records), *framed);
  records.insert(records.end(), closing.begin(), closing.end());
  return ThreadSnapshot{std::move(framed->frame), std::move(records)};
}

Closing QemuEngine::last_closing(const Ring& ring, const OpenRun& run, Address newest_target,
                                 const Framed& framed) {
  const EdgeCause cause = end_cause(ring);
  if (has_ended(ring)) return close_at_end(run, cause);
  return close_anywhere(run, newest_target, *framed.frame.code, framed.newest, cause);
}

Result<OpenedThread> QemuEngine::open_thread(ThreadId thread, std::uint64_t limit) {
  Result<const Ring*> ring = folder_.ring_of(thread.tid);
  if (!ring) return fail(std::move(ring.error()));
  if (!has_ended(**ring) && folder_.is_alive()) {
    Result<ThreadSnapshot> snapshot = last_snapshot(thread, limit);
    if (!snapshot) return fail(std::move(snapshot.error()));
    auto shared = std::make_shared<const ThreadSnapshot>(std::move(*snapshot));
    return records_in_place(*shared, shared, shared->records);
  }
  Result<OpenRun> run = open_run(**ring);
  if (!run) return fail(std::move(run.error()));
  const RecordSpan open = view_ring(**ring);
  auto framed = frame_of(**ring, open.first, open.records, (*ring)->header().epoch.load());
  if (!framed) return fail(std::move(framed.error()));
  const Closing closing = last_closing(**ring, *run, newest_target(open.records), *framed);
  const RecordSpan closed = view_ring(**ring, closing);
  if (limit < kRingMaxRecords) limit += closing.size();
  return records_in_place(std::move(framed->frame), closed.owner, closed.records, limit);
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
