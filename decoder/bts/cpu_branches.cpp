#include "decoder/bts/cpu_branches.h"

#include <algorithm>
#include <utility>

namespace tailtrace::bts {
namespace {

struct OwnedSample {
  perf::RecordHeader header;
  std::uint64_t ip;
  std::uint32_t pid, tid;
  std::uint64_t time_ns;
  std::uint64_t address;
};
static_assert(sizeof(OwnedSample) == kOwnedSampleSize_bytes);

bool continues(const Batch& batch, ThreadId thread, std::uint64_t time_ns) {
  return batch.thread == thread && batch.time_ns == time_ns;
}

}  // namespace

CpuBranches read_cpu_samples(const perf::FixedRecords& records) {
  CpuBranches cpu;
  if (records.size_bytes != kOwnedSampleSize_bytes) return cpu;
  for (std::size_t i = 0; i < records.count; ++i) {
    const auto sample = load<OwnedSample>(records[i]);
    const ThreadId thread{static_cast<std::int32_t>(sample.pid),
                          static_cast<std::int32_t>(sample.tid)};
    if (cpu.batches.empty() || !continues(cpu.batches.back(), thread, sample.time_ns))
      cpu.batches.push_back({thread, sample.time_ns, {}, {}});
    cpu.batches.back().branches.push_back({{sample.ip}, {sample.address}});
  }
  if ((records.first != 0 || records.stranger) && !cpu.batches.empty())
    cpu.begin_ns = cpu.batches.front().time_ns;
  return cpu;
}

Result<CpuBranches> read_cpu_stacks(const perf::RecordList& records,
                                    const perf::RecordFormat& format, bool overwritten) {
  CpuBranches cpu;
  std::size_t losses = 0;
  std::map<ThreadId, std::size_t> known_losses;  // when the thread had its last stack
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto record = perf::parse_record(records[i], format);
    if (!record) return fail(std::move(record.error()));
    if (auto* sample = std::get_if<perf::Sample>(&record->body)) {
      const ThreadId thread = sample->thread.value_or(ThreadId{});
      cpu.batches.push_back({thread, sample->time_ns.value_or(0), read_branch_stack(*sample), {}});
      if (std::exchange(known_losses[thread], losses) != losses)
        cpu.batches.back().after_loss = GapCause::kLost;
    } else if (std::holds_alternative<perf::LostEvent>(record->body) ||
               std::holds_alternative<perf::ThrottleEvent>(record->body)) {
      ++losses;
    }
  }
  if (overwritten && !cpu.batches.empty()) cpu.begin_ns = cpu.batches.front().time_ns;
  return cpu;
}

void take_away_mixed(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                     const MayChangePlaces& may) {
  const std::size_t unknown = std::erase_if(cpu.batches, [&](const Batch& batch) {
    return batch.time_ns < known_from_ns && may(batch.thread, {}, 0);
  });
  if (unknown != 0) cpu.begin_ns = std::max(cpu.begin_ns, known_from_ns);
  std::vector<Batch> pure;
  std::uint64_t before_ns = 0;
  auto slot = slots.slots.begin();
  for (Batch& batch : cpu.batches) {
    // A thread's branches are written right behind the end of its slot: others' are among these.
    for (; slot != slots.slots.end() && slot->end_ns <= batch.time_ns; ++slot) {
      const bool written = slot->end_ns <= before_ns || slot->thread_ended;
      if (written || slot->thread == batch.thread) continue;
      if (!may(slot->thread, batch.thread, slot->end_ns)) continue;
      pure.push_back({slot->thread, slot->end_ns, {}, GapCause::kLost});
      batch.branches.clear();
      batch.after_loss = GapCause::kLost;
    }
    before_ns = batch.time_ns;
    pure.push_back(std::move(batch));
  }
  cpu.batches = std::move(pure);
}

void part_stacks(CpuBranches& cpu, const perf::CpuSlots& slots, std::uint64_t known_from_ns,
                 const MayChangePlaces& may) {
  if (std::ranges::any_of(cpu.batches, [&](const Batch& batch) {
        return batch.time_ns < known_from_ns && may(batch.thread, {}, 0);
      }))
    cpu.begin_ns = std::max(cpu.begin_ns, known_from_ns);
  for (std::size_t i = 1; i < slots.slots.size(); ++i) {
    const perf::CpuSlot &left = slots.slots[i - 1], &came = slots.slots[i];
    if (left.thread == came.thread || !may(left.thread, came.thread, left.end_ns)) continue;
    cpu.batches.push_back({left.thread, left.end_ns, {}, GapCause::kLost});
    cpu.batches.push_back({came.thread, came.begin_ns, {}, GapCause::kLost});
  }
  std::stable_sort(cpu.batches.begin(), cpu.batches.end(),
                   [](const Batch& a, const Batch& b) { return a.time_ns < b.time_ns; });
}

std::map<ThreadId, std::vector<Share>> shares_by_thread(std::span<const CpuBranches> cpus) {
  std::uint64_t all_known_from_ns = 0;
  for (const CpuBranches& cpu : cpus) all_known_from_ns = std::max(all_known_from_ns, cpu.begin_ns);
  std::map<ThreadId, std::vector<Share>> shares;
  for (const CpuBranches& cpu : cpus)
    for (const Batch& batch : cpu.batches)
      if (batch.thread.tid >= 0) shares[batch.thread].push_back({&batch, batch.after_loss});
  for (auto& [thread, list] : shares) {
    std::stable_sort(list.begin(), list.end(), [](const Share& a, const Share& b) {
      return a.batch->time_ns < b.batch->time_ns;
    });
    // Nobody knows what the thread did meanwhile on a CPU that forgot.
    std::uint64_t before_ns = 0;
    for (Share& share : list) {
      if (before_ns < all_known_from_ns && !share.lost_before)
        share.lost_before = GapCause::kOverwritten;
      before_ns = share.batch->time_ns;
    }
  }
  return shares;
}

}  // namespace tailtrace::bts
