#include "decoder/bundle/cpu_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "decoder/bundle/lldb_bundle.h"
#include "decoder/bundle/trace_file.h"
#include "decoder/pt/packets/packet_reader.h"

namespace tailtrace {
namespace {

// From one PSB to the next.
struct Block {
  std::size_t begin = 0, end = 0;
  std::optional<std::uint64_t> time;  // of its first TSC
};

// The first TSC in [begin, end) that `wanted` takes, and where it stands.
template <class Wanted>
std::optional<std::pair<std::size_t, std::uint64_t>> find_tsc(ByteSpan trace, std::size_t begin,
                                                              std::size_t end, Wanted wanted) {
  pt::PacketReader packets(trace.first(end));
  packets.seek(begin);
  std::size_t at = packets.offset();
  for (pt::Packet packet; packets.next(packet) == pt::ReadStatus::kOk; at = packets.offset())
    if (packet.kind == pt::PacketKind::kTsc && wanted(packet.payload))
      return {{at, packet.payload}};
  return std::nullopt;
}

std::vector<Block> find_blocks(ByteSpan trace) {
  std::vector<Block> blocks;
  std::optional<std::size_t> psb = pt::find_psb(trace, 0);
  while (psb) {
    std::optional<std::size_t> next = pt::find_psb(trace, *psb + pt::kPsbSize_bytes);
    Block block{*psb, next.value_or(trace.size()), {}};
    if (auto tsc = find_tsc(trace, block.begin, block.end, [](auto) { return true; }))
      block.time = tsc->second;
    blocks.push_back(block);
    psb = next;
  }
  return blocks;
}

Result<std::vector<CpuExecution>> read_executions(const LldbCpu& cpu,
                                                  const perf::TimeConversion& clock) {
  Result<MappedFile> switches = open_trace(cpu.context_switch_path);
  if (!switches) return fail(std::move(switches.error()));
  auto executions = read_context_switches(switches->bytes(), clock);
  if (!executions) executions.error().what += " in " + cpu.context_switch_path;
  return executions;
}

}  // namespace

Result<CpuTraces> CpuTraces::open(std::span<const LldbCpu> cpus,
                                  const perf::TimeConversion& clock) {
  CpuTraces made;
  std::set<std::int32_t> known;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    Result<MappedFile> trace = open_trace(cpus[i].trace_path);
    if (!trace) return fail(std::move(trace.error()));
    made.traces_.push_back(std::move(*trace));
    auto executions = read_executions(cpus[i], clock);
    if (!executions) return fail(std::move(executions.error()));
    for (const CpuExecution& execution : *executions)
      if (known.insert(execution.thread.tid).second) made.threads_.push_back(execution.thread);
    made.attribute(i, *executions);
  }
  auto order = [](const Share& share) { return std::tuple(share.tid, share.time); };
  std::ranges::stable_sort(made.shares_, {}, order);
  return made;
}

void CpuTraces::attribute(std::size_t cpu, std::span<const CpuExecution> executions) {
  const ByteSpan trace = traces_[cpu].bytes();
  const std::vector<Block> blocks = find_blocks(trace);
  totals_.blocks += blocks.size();
  totals_.executions += executions.size();
  totals_.unattributed += blocks.size();
  auto block = blocks.begin();
  for (const CpuExecution& execution : executions) {
    Share share{cpu,
                0,
                0,
                execution.known_time(),
                execution.thread.tid,
                execution.begin_known,
                execution.end_known};
    auto first = blocks.end(), last = blocks.end();
    for (; block != blocks.end() && block->time.value_or(0) < execution.end; ++block) {
      if (block->time.value_or(0) <= execution.begin) continue;
      if (first == blocks.end()) first = block;
      last = block;
    }
    // One between them that does not say when it was written is of the same execution.
    if (first != blocks.end()) {
      totals_.unattributed -= static_cast<std::uint64_t>(last - first) + 1;
      auto later = [&](std::uint64_t time) { return time > execution.end; };
      auto others = find_tsc(trace, last->begin, last->end, later);
      share.begin = first->begin;
      share.end = others ? others->first : last->end;
      share.time = *first->time;
    }
    shares_.push_back(share);
  }
  for (const Block& one : blocks) totals_.untimed += !one.time;
}

ThreadTrace CpuTraces::of_thread(std::int32_t tid) const {
  ThreadTrace found;
  auto [first, last] = std::ranges::equal_range(shares_, tid, {}, &Share::tid);
  bool is_lost = false;
  for (auto share = first; share != last; ++share) {
    ++found.executions;
    found.executions_traced += share->is_traced();
    is_lost = is_lost || !share->begin_known || !share->is_traced();
    if (!share->is_traced()) continue;
    ByteSpan bytes = traces_[share->cpu].bytes().subspan(share->begin, share->end - share->begin);
    if (!found.bytes.empty()) found.joints.push_back({found.bytes.size(), is_lost});
    found.bytes.insert(found.bytes.end(), bytes.begin(), bytes.end());
    is_lost = !share->end_known;
  }
  return found;
}

std::vector<Error> CpuTraces::problems_of(const ThreadTrace& trace, std::int32_t tid) const {
  std::vector<Error> problems;
  if (totals_.unattributed != 0)
    problems.push_back(
        {ErrorCode::kGaps,
         fmt::format("{} of {} pieces of the trace (PSB blocks) are nobody's", totals_.unattributed,
                     totals_.blocks),
         totals_.untimed == 0
             ? "the context switches do not say which thread was executed when they were written"
             : fmt::format("{} of them do not say when they were written", totals_.untimed),
         "", ""});
  if (trace.executions != trace.executions_traced)
    problems.push_back(
        {ErrorCode::kGaps,
         fmt::format("thread {} has no trace of {} of the {} times that a processor executed it",
                     tid, trace.executions - trace.executions_traced, trace.executions),
         "a processor's trace is taken apart where it has a PSB, and there was none", "", ""});
  return problems;
}

}  // namespace tailtrace
