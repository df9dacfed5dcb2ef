#include "plugin/server/recording/recorder.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "decoder/base/process_status.h"
#include "plugin/server/recording/code_in_memory.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kInsnsPerRecord = 4;  // somewhat less than on average

}  // namespace

RecordedThread* Recorder::find(ThreadId thread) {
  if (last_ != nullptr && last_->id == thread) return last_;
  auto it = threads_.find(thread);
  return it == threads_.end() ? nullptr : last_ = &it->second;
}

bool Recorder::records_process(std::int32_t pid) const {
  auto it = threads_.lower_bound({pid, 0});
  return it != threads_.end() && it->first.pid == pid;
}

Result<RecordedThread*> Recorder::start(ThreadId id) {
  if (RecordedThread* known = find(id)) return known;
  auto pc = below_.read_pc(id);
  if (!pc) return fail(std::move(pc.error()));
  auto thread = start_running(id);
  if (!thread) return thread;
  (*thread)->stop.pc = *pc;
  (*thread)->pc_known = true;
  return thread;
}

Result<RecordedThread*> Recorder::start_running(ThreadId id) {
  if (RecordedThread* known = find(id)) return known;
  if (auto started = engine_.start(id); !started) return fail(std::move(started.error()));
  RecordedThread thread;
  thread.id = id;
  thread.begun_before_enabled = engine_.was_born_recorded(id);
  if (kept_ != nullptr) kept_->note_process(id.pid);
  ++met_;
  return &threads_.emplace(id, std::move(thread)).first->second;
}

void Recorder::thread_created(ThreadId id, Address pc) {
  if (find(id) != nullptr || !records_process(id.pid)) return;
  drop_ended();
  if (!engine_.start(id)) return;
  RecordedThread thread;
  thread.id = id;
  thread.stop.pc = pc;
  thread.pc_known = true;
  thread.begun_before_enabled = true;
  threads_.emplace(id, std::move(thread));
  ++met_;
}

void Recorder::thread_made(std::int32_t tid) {
  auto status = process_status(tid);
  if (!status) return;
  ThreadId id{0, tid};
  const std::string_view pid = status_value(*status, "Tgid");
  std::from_chars(pid.data(), pid.data() + pid.size(), id.pid);
  if (!records_process(id.pid)) return;
  if (const RecordedThread* ended = find(id)) {  // of the same number
    keep(*ended);
    (void)engine_.stop(id);
  }
  // The debugger is told why it cannot be recorded when it asks for it.
  if (!engine_.start(id)) return;
  RecordedThread thread;
  thread.id = id;
  thread.begun_before_enabled = true;
  threads_.insert_or_assign(id, std::move(thread));
  ++met_;
  any_was_made_ = true;
}

void Recorder::keep(const RecordedThread& thread) {
  if (kept_ == nullptr) return;
  // Its process may be gone already: where it stood last has to do.
  if (auto snapshot = engine_.snapshot(thread.id, thread.stop, ~0ull)) kept_->add(*snapshot);
}

void Recorder::keep_all() {
  for (const auto& [id, thread] : threads_) keep(thread);
}

Result<void> Recorder::stop(ThreadId id) {
  if (RecordedThread* thread = find(id)) keep(*thread);
  threads_.erase(id);
  last_ = nullptr;
  return engine_.stop(id);
}

Result<Engine::Stop> Recorder::settle(RecordedThread& thread) {
  if (thread.pc_known && !thread.pc_written && !thread.unsettled) return thread.stop;
  auto pc = below_.read_pc(thread.id);
  if (!pc) return fail(std::move(pc.error()));
  bool written = std::exchange(thread.pc_written, false);
  if (!thread.pc_known) {
    thread.stop.pc = *pc;
    thread.pc_known = true;
  } else if (written && step_ != nullptr) {
    step_->moved(thread.id, thread.stop.pc, *pc);
    thread.stop = {*pc, false};
  } else if (*pc != thread.stop.pc) {
    stopped_at(thread, *pc);
  }
  thread.unsettled = false;
  return thread.stop;
}

Result<ThreadSnapshot> Recorder::snapshot(RecordedThread& thread, std::uint64_t limit) {
  auto stop = settle(thread);
  if (!stop) return fail(std::move(stop.error()));
  return engine_.snapshot(thread.id, *stop, limit);
}

Result<ThreadSnapshot> Recorder::newest(RecordedThread& thread, std::uint64_t instructions) {
  for (std::uint64_t limit = instructions / kInsnsPerRecord + 1;; limit *= 2) {
    auto snapshot = this->snapshot(thread, limit);
    if (!snapshot || snapshot->records.size() < limit) return snapshot;
    std::uint64_t held = 0;
    for (const BranchRecord& record : snapshot->records) held += record.insns;
    if (held >= instructions) return snapshot;
  }
}

Result<std::optional<std::uint64_t>> Recorder::system_call(ThreadId id) {
  RecordedThread* thread = find(id);
  const auto insn = thread != nullptr ? next_instruction(*thread) : std::nullopt;
  if (!insn || insn->kind != InstructionClass::kSystemCall) return std::optional<std::uint64_t>();
  if (!thread->call) {
    auto number = below_.read_register(id, Below::Register::kRax);
    if (!number) return fail(std::move(number.error()));
    thread->call = *number;
  }
  return thread->call;
}

ThreadSnapshot Recorder::with_code_in_memory(ThreadSnapshot snapshot) {
  const ThreadId id = snapshot.thread;
  return tailtrace::with_code_in_memory(std::move(snapshot),
                                        [this, id](Address address, std::span<std::uint8_t> out) {
                                          return below_.read_memory(id, address, out);
                                        });
}

Result<HistoryMark> Recorder::mark(RecordedThread& thread) {
  auto stop = settle(thread);
  if (!stop) return fail(std::move(stop.error()));
  auto newest = engine_.snapshot(thread.id, *stop, 1);
  if (!newest) return fail(std::move(newest.error()));
  return end_mark(*newest);
}

Result<ThreadSnapshot> Recorder::visible(RecordedThread& thread, Part& part) {
  auto head = engine_.head(thread.id);
  if (!head) return fail(std::move(head.error()));
  // All since `begin`, and the record before.
  const std::uint64_t all = head->value - std::min(head->value, thread.begin.head.value) + 1;
  const std::uint64_t limit = part == Part::kAll ? all : std::min(all, kNewestPart_records);
  auto found = snapshot(thread, limit);
  if (!found) return found;
  if (limit == all || found->records.size() < limit) part = Part::kAll;
  return since(std::move(*found), thread.begin);
}

void Recorder::registers_written(ThreadId id) {
  RecordedThread* thread = find(id);
  if (thread == nullptr) return;
  (void)settle(*thread);
  thread->pc_written = true;
  thread->call.reset();
}

void Recorder::memory_written(std::int32_t pid, Address address, std::uint64_t size_bytes) {
  if (step_ != nullptr) step_->memory_written(pid, address, size_bytes);
}

void Recorder::executed(ThreadId id, Address entry) {
  for (const auto& [other, recorded] : threads_)
    if (other.pid == id.pid) keep(recorded);
  std::erase_if(threads_, [&](const auto& t) { return t.first.pid == id.pid && t.first != id; });
  last_ = nullptr;
  RecordedThread* thread = find(id);
  if (thread == nullptr) return;
  if (step_ != nullptr) step_->replaced(id, entry);
  thread->stop = {entry, false};
  thread->pc_known = !entry.is_null();
  if (step_ == nullptr) {
    // A recording of its own, from its first instruction.
    thread->begin = {};
    thread->begun_before_enabled = true;
  }
  thread->unsettled = thread->pc_written = false;
  thread->last_read.reset();
}

void Recorder::thread_gone(ThreadId id) {
  if (find(id) != nullptr) (void)stop(id);
}

void Recorder::drop_ended() {
  std::vector<ThreadId> ended;
  for (const auto& [id, thread] : threads_)
    if (::access(fmt::format("/proc/{}/task/{}", id.pid, id.tid).c_str(), F_OK) != 0)
      ended.push_back(id);
  for (ThreadId id : ended) thread_gone(id);
}

void Recorder::process_gone(std::int32_t pid) {
  for (const auto& [id, thread] : threads_) {
    if (id.pid != pid) continue;
    keep(thread);
    if (step_ == nullptr) (void)engine_.stop(id).has_value();
  }
  std::erase_if(threads_, [&](const auto& t) { return t.first.pid == pid; });
  last_ = nullptr;
  if (step_ != nullptr) step_->process_gone(pid);
}

void Recorder::forget_all() {
  while (!threads_.empty()) process_gone(threads_.begin()->first.pid);
}

}  // namespace tailtrace
