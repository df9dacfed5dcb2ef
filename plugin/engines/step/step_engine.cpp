#include "plugin/engines/step/step_engine.h"

#include <fmt/core.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>

#include "decoder/base/file.h"
#include "decoder/record/ring.h"
#include "decoder/symbols/mapping.h"
#include "plugin/engines/signal_masks.h"
#include "plugin/engines/step/transition.h"

namespace tailtrace {
namespace {

BranchRecord async_record(RecordKind kind, Address from, Address to, std::uint64_t insns,
                          std::uint16_t extra) {
  return {from, to, 0, static_cast<std::uint32_t>(insns), kind, kFlagAsync, extra};
}

bool catches(std::int32_t pid, int signal) {
  const auto masks = signal_masks(pid);
  return masks && masks->catches(signal);
}

std::uint16_t cause(EdgeCause c) { return static_cast<std::uint16_t>(c); }

}  // namespace

struct StepEngine::Recording {
  ThreadId thread;
  RingWriter writer;
  Ring ring;
  LiveCode* code = nullptr;
  Position floor;               // older records are of other code and are not shown
  std::uint64_t run_insns = 0;  // executed since the last record
  Address next;                 // where the thread is
  bool begun = false;           // a kEnable was written

  void push(BranchRecord record) {
    record.time = __rdtsc();
    writer.push(record);
    run_insns = 0;
    next = record.to;
    writer.set_open_run(0, next);
  }
};

StepEngine::StepEngine(std::string folder, EngineConfig config, ReadMemory read_memory)
    : folder_(std::move(folder)), config_(config), read_memory_(std::move(read_memory)) {}

StepEngine::~StepEngine() = default;

Result<void> StepEngine::start(ThreadId thread) {
  if (find(thread) != nullptr) return {};
  if (auto ok = check_ring_capacity(config_.ring_records); !ok) return fail(std::move(ok.error()));
  std::string path = fmt::format("{}/step-{}.ring", folder_, made_);
  auto writer = RingWriter::create(path, thread, made_++, config_.ring_records);
  if (!writer) return fail(std::move(writer.error()));
  auto ring = Ring::open(path);
  ::unlink(path.c_str());
  if (!ring) return fail(std::move(ring.error()));
  auto recording = std::make_unique<Recording>(
      Recording{thread, std::move(*writer), std::move(*ring), &code_of(thread), {}, 0, {}, false});
  recordings_.emplace(thread, std::move(recording));
  return {};
}

Result<void> StepEngine::stop(ThreadId thread) {
  if (recordings_.erase(thread) == 0)
    return fail(ErrorCode::kGone, fmt::format("cannot stop recording thread {}", thread.tid),
                "it is not recorded");
  last_ = nullptr;
  bool any = std::any_of(recordings_.begin(), recordings_.end(),
                         [&](const auto& r) { return r.first.pid == thread.pid; });
  if (!any) code_.erase(thread.pid);
  return {};
}

bool StepEngine::is_recording(ThreadId thread) const { return recordings_.contains(thread); }

StepEngine::Recording* StepEngine::find(ThreadId thread) {
  if (last_ != nullptr && last_->thread == thread) return last_;
  auto it = recordings_.find(thread);
  return it == recordings_.end() ? nullptr : last_ = it->second.get();
}

LiveCode& StepEngine::code_of(ThreadId thread) {
  std::unique_ptr<LiveCode>& code = code_[thread.pid];
  if (!code) {
    code = std::make_unique<LiveCode>(
        [this, thread](Address a, std::span<std::uint8_t> out) {
          return read_memory_(thread, a, out);
        },
        [pid = thread.pid] { return process_maps(pid).value_or(std::string()); });
  }
  return *code;
}

Result<Position> StepEngine::head(ThreadId thread) const {
  auto it = recordings_.find(thread);
  if (it == recordings_.end())
    return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
  return it->second->writer.head();
}

Result<ThreadSnapshot> StepEngine::snapshot(ThreadId thread, const Stop& stop,
                                            std::uint64_t limit) {
  Recording* r = find(thread);
  if (r == nullptr)
    return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
  ThreadSnapshot snapshot{{thread, std::string(name()), {}, false, {}, r->code->image()}, {}};
  snapshot.former_maps = r->code->former_maps();
  std::uint64_t held = r->writer.head().value - std::max(r->floor, r->ring.oldest()).value;
  RecordRange range = r->ring.newest(std::min(limit, held));
  snapshot.first = range.first;
  snapshot.records = std::move(range.records);
  snapshot.complete = snapshot.first == r->floor;
  auto changes = std::count_if(snapshot.records.begin(), snapshot.records.end(),
                               [](const auto& x) { return x.kind == RecordKind::kCodeChange; });
  snapshot.first_epoch = {r->code->epoch().value - static_cast<std::uint32_t>(changes)};
  if (!r->begun)
    snapshot.records.push_back(
        {{}, stop.pc, 0, 0, RecordKind::kEnable, kFlagSynthetic, cause(EdgeCause::kDebugger)});
  BranchRecord end =
      async_record(RecordKind::kDisable, stop.pc, {}, r->run_insns, cause(EdgeCause::kDebugger));
  end.flags |= kFlagSynthetic;
  snapshot.records.push_back(end);
  return snapshot;
}

bool StepEngine::stepped(ThreadId thread, Address before, Address after, int signal) {
  Recording* r = find(thread);
  if (r == nullptr) return true;
  if (!r->begun) restart(*r, before, EdgeCause::kDebugger);
  bool certain = follow(*r, before, after, signal);
  if (r->code->is_full()) renew_code(thread, EdgeCause::kUnknown);
  return certain;
}

bool StepEngine::follow(Recording& r, Address before, Address after, int signal) {
  Epoch epoch = r.code->epoch();
  auto insn = r.code->at(before);
  Transition transition = insn ? classify_transition(*insn, after) : Transition::kImpossible;
  if (transition == Transition::kImpossible && signal == 0 && r.code->recheck(before)) {
    insn = r.code->at(before);
    transition = insn ? classify_transition(*insn, after) : Transition::kImpossible;
  }
  note_epochs(r.thread.pid, *r.code, epoch);
  bool unclear = transition == Transition::kImpossible || (insn && leads_anywhere(insn->kind));
  if (signal != 0 && unclear && catches(r.thread.pid, signal)) {
    r.push(async_record(RecordKind::kSignal, before, after, r.run_insns,
                        static_cast<std::uint16_t>(signal)));
    return true;
  }
  switch (transition) {
    case Transition::kNothing:
      return insn->kind == InstructionClass::kRepString;
    case Transition::kFellThrough:
      r.next = after;
      r.writer.set_open_run(++r.run_insns, after);
      return true;
    case Transition::kBranched:
      r.push({before, after, 0, static_cast<std::uint32_t>(r.run_insns + 1),
              kind_of_transition(*insn, after), 0, 0});
      if (insn->kind != InstructionClass::kSystemCall) return true;
      epoch = r.code->epoch();
      r.code->system_call_done();
      note_epochs(r.thread.pid, *r.code, epoch);
      return false;
    case Transition::kImpossible:
      break;
  }
  if (insn && aborted(r, *insn, after)) return true;
  if (before != after)
    r.push(async_record(RecordKind::kDiscontinuity, before, after, r.run_insns, 0));
  return false;
}

std::optional<Instruction> StepEngine::instruction_at(ThreadId thread, Address address) {
  Recording* r = find(thread);
  if (r == nullptr) return std::nullopt;
  Epoch epoch = r->code->epoch();
  auto insn = r->code->at(address);
  note_epochs(thread.pid, *r->code, epoch);
  return insn;
}

// A single step does not get into a transaction: XBEGIN is aborted and goes to its other way out,
// and it depends on the processor whether the trap comes there or one instruction later.
bool StepEngine::aborted(Recording& r, const Instruction& insn, Address after) {
  auto way_out = abort_target(insn, r.code->bytes_of(insn));
  if (!way_out) return false;
  auto first = r.code->at(*way_out);
  bool ran_first = first && classify_transition(*first, after) != Transition::kImpossible;
  if (after != *way_out && !ran_first) return false;
  BranchRecord record =
      async_record(RecordKind::kTransactionAbort, insn.address, *way_out, r.run_insns, 0);
  record.flags |= kFlagAbort;
  r.push(record);
  return after == *way_out || follow(r, *way_out, after, 0);
}

void StepEngine::moved(ThreadId thread, Address before, Address after) {
  Recording* r = find(thread);
  if (r == nullptr || !r->begun || before == after) return;
  r->push(async_record(RecordKind::kDiscontinuity, before, after, r->run_insns, 0));
}

void StepEngine::memory_written(std::int32_t pid, Address address, std::uint64_t size_bytes) {
  auto it = code_.find(pid);
  if (it != code_.end()) it->second->written(address, size_bytes);
}

// Every thread of the process needs each change in its own records: epochs are counted there.
void StepEngine::note_epochs(std::int32_t pid, const LiveCode& code, Epoch before) {
  for (auto epoch = before.value; epoch != code.epoch().value; ++epoch)
    for (auto& [thread, r] : recordings_) {
      if (thread.pid != pid || !r->begun) continue;
      r->push(async_record(RecordKind::kCodeChange, r->next, r->next, r->run_insns, 0));
    }
}

void StepEngine::restart(Recording& r, Address pc, EdgeCause why) {
  r.floor = r.writer.head();
  r.begun = true;
  r.push({{}, pc, 0, 0, RecordKind::kEnable, 0, cause(why)});
}

void StepEngine::replaced(ThreadId thread, Address entry) {
  Recording* r = find(thread);
  if (r == nullptr) return;
  r->next = entry;
  renew_code(thread, EdgeCause::kExec);
}

void StepEngine::renew_code(ThreadId thread, EdgeCause why) {
  code_.erase(thread.pid);
  LiveCode& code = code_of(thread);
  for (auto& [id, r] : recordings_) {
    if (id.pid != thread.pid) continue;
    r->code = &code;
    if (r->begun || id == thread) restart(*r, r->next, why);
  }
}

void StepEngine::thread_gone(ThreadId thread) {
  if (recordings_.contains(thread)) (void)stop(thread);
}

void StepEngine::process_gone(std::int32_t pid) {
  std::erase_if(recordings_, [&](const auto& r) { return r.first.pid == pid; });
  last_ = nullptr;
  code_.erase(pid);
}

}  // namespace tailtrace
