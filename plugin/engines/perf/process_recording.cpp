#include "plugin/engines/perf/process_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "decoder/base/file.h"
#include "decoder/perf/aux_area.h"
#include "plugin/engines/perf/pt_settings.h"
#include "plugin/engines/tasks.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kDefaultBuffer_bytes = 4u << 20;
constexpr std::uint64_t kSideband_bytes = 128u << 10;
constexpr std::uint64_t kSidebandFields = kSampleTid | kSampleTime;

// The numbers in a list such as "0-3,6".
std::vector<int> cpus_in(std::string_view list) {
  std::vector<int> cpus;
  const char* at = list.data();
  const char* end = at + list.size();
  for (int first = 0; at < end; ++at) {
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc()) break;
    int last = first;
    if (read.ptr < end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc()) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = read.ptr;
  }
  return cpus;
}

Result<std::vector<int>> online_cpus(const std::string& root) {
  auto list = read_file(root + "/sys/devices/system/cpu/online", 4096);
  if (!list) return fail(std::move(list.error()));
  return cpus_in(as_text(*list));
}

perf_event_attr sideband_attr() {
  perf_event_attr attr = plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attr.sample_type = kSidebandFields;
  attr.sample_id_all = 1;
  attr.context_switch = 1;
  attr.write_backward = 1;
  return attr;
}

// All that one of these made is made by the recorded process.
void inherit(perf_event_attr& attr, bool children) {
  attr.inherit = 1;
  attr.inherit_thread = children ? 0 : 1;
}

}  // namespace

Result<void> ProcessRecording::open_cpu(const PerfConfig& config, const perf_event_attr& attr,
                                        int number, const std::vector<ThreadId>& threads,
                                        bool children) {
  Cpu cpu{{}, {}, Sideband(*kernel_)};
  perf_event_attr sideband = sideband_attr();
  inherit(sideband, children);
  const std::uint64_t size = std::bit_ceil(std::max<std::uint64_t>(
      config.buffer_bytes != 0 ? config.buffer_bytes : kDefaultBuffer_bytes, page_size()));
  for (ThreadId thread : threads) {
    const Target target{thread.tid, number};
    auto beside = Event::open(*kernel_, Purpose::kSideband, sideband, target);
    if (!beside && beside.error().code == ErrorCode::kGone) continue;
    if (!beside) return fail(std::move(beside.error()));
    perf_event_attr more = attr;
    more.write_backward = 1;
    auto trace = cpu.trace.empty() ? open_aux_event(*kernel_, Purpose::kPt, attr, target, size)
                                   : Event::open(*kernel_, Purpose::kPt, more, target);
    if (!trace && trace.error().code == ErrorCode::kGone) continue;
    if (!trace) return fail(std::move(trace.error()));
    if (cpu.trace.empty()) {
      if (auto ok = beside->map_ring(kSideband_bytes, Event::WhenFull::kOverwrite); !ok) return ok;
    } else {
      if (auto ok = beside->write_into(cpu.sideband.front()); !ok) return ok;
      if (auto ok = trace->write_into(cpu.trace.front()); !ok) return ok;
    }
    auto told = cpu.told.watch(
        target, children ? Sideband::Inherit::kProcesses : Sideband::Inherit::kThreads);
    if (!told && told.error().code != ErrorCode::kGone) return told;
    cpu.sideband.push_back(std::move(*beside));
    cpu.trace.push_back(std::move(*trace));
  }
  if (!cpu.trace.empty()) cpus_.push_back(std::move(cpu));
  return {};
}

Result<ProcessRecording> ProcessRecording::start(Kernel& kernel, const PerfConfig& config,
                                                 std::int32_t pid, bool children) {
  auto pmu = read_pmu(kernel.root(), "intel_pt");
  if (!pmu) return fail(explain(kernel, {Purpose::kPt, Step::kOpen, ENOENT, {pid, -1}}));
  PerfConfig timed = config;
  timed.tsc = true;
  auto attr =
      pt_attr(*pmu, timed, timed.buffer_bytes != 0 ? timed.buffer_bytes : kDefaultBuffer_bytes);
  if (!attr) return fail(std::move(attr.error()));
  attr->disabled = 1;
  inherit(*attr, children);
  auto cpus = online_cpus(kernel.root());
  if (!cpus) return fail(std::move(cpus.error()));
  std::vector<ThreadId> threads = threads_of(kernel.root(), pid);
  ProcessRecording recording(kernel, pid, children);
  // A thread with an event that is not inherited never shares its events with those that it made:
  // then the hardware is switched off and on between them, which the trace shows.
  for (ThreadId thread : threads) {
    perf_event_attr own = plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    auto anchor = Event::open(kernel, Purpose::kSideband, own, {thread.tid, -1});
    if (anchor) recording.anchors_.push_back(std::move(*anchor));
  }
  for (int cpu : *cpus)
    if (auto ok = recording.open_cpu(timed, *attr, cpu, threads, children); !ok)
      return fail(std::move(ok.error()));
  if (recording.cpus_.empty())
    return fail(ErrorCode::kGone, fmt::format("cannot record process {}", pid),
                "there is no such process");
  auto clock = recording.cpus_.front().sideband.front().time_conversion();
  if (!clock)
    return fail(ErrorCode::kNoEngine, "cannot record by CPU",
                "the kernel's clock is not the processor's counter here: nobody can tell whose "
                "trace it is",
                "record thread by thread");
  recording.clock_ = *clock;
  recording.decoder_ = pt_decoder_config(read_machine(kernel.root()).cpu, *pmu, timed);
  if (auto ok = recording.look(); !ok) return fail(std::move(ok.error()));
  for (ThreadId thread : threads) recording.names_[thread.tid] = name_of(kernel.root(), thread);
  for (Cpu& cpu : recording.cpus_)
    for (Event& event : cpu.trace)
      if (auto ok = event.enable(); !ok) return fail(std::move(ok.error()));
  return recording;
}

Result<void> ProcessRecording::look() {
  std::vector<ProgramCodes::Told> all;
  for (Cpu& cpu : cpus_) {
    auto told = cpu.told.take();
    if (!told) return fail(std::move(told.error()));
    for (ParsedRecord& record : *told) {
      const std::uint64_t time = cpu.told.time_of(record);
      all.push_back({time, std::move(record)});
    }
  }
  const std::uint64_t now = cpus_.empty() ? 0 : cpus_.front().told.now();
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  for (const ProgramCodes::Told& told : all) {
    if (auto* name = std::get_if<CommEvent>(&told.record.body))
      names_[name->thread.tid] = name->name;
    if (auto* task = std::get_if<TaskEvent>(&told.record.body); task != nullptr && task->begins)
      names_[task->thread.tid] = names_[task->parent.tid];
  }
  codes_.update(std::move(all), now);
  return {};
}

std::string ProcessRecording::name(ThreadId thread) const {
  auto name = names_.find(thread.tid);
  return name == names_.end() ? std::string() : name->second;
}

Result<pt::CpuTrace> ProcessRecording::read(Cpu& cpu, const pt::JoinedCode& code) {
  const Event& buffer = cpu.trace.front();
  auto view = order_aux_area(buffer.aux(), buffer.aux_head(), AuxHead::kOffset);
  if (!view) return fail(std::move(view.error()));
  const AuxView written = without_leading_zeros(*view);
  auto holes = read_aux_holes(buffer, ~0ull, buffer.aux().size());
  if (!holes) return fail(std::move(holes.error()));
  auto ring = read_still(cpu.sideband.front());
  if (!ring) return fail(std::move(ring.error()));
  auto slots = find_cpu_slots(ring->records, {kSidebandFields, true, 0, 0});
  if (!slots) return fail(std::move(slots.error()));
  pt::CpuTrace traced;
  traced.slots = std::move(*slots);
  // Who was there before the oldest record that is left is not known.
  const bool forgot = 0 - cpu.sideband.front().data_head() > cpu.sideband.front().ring().size();
  if (forgot) traced.begin_ns = traced.slots.forget_before_first_switch();
  pt::DecoderConfig config = decoder_;
  config.code_changes = pt::slot_changes(code, codes_.all(), codes_.first(), traced.slots, clock_);
  pt::make_flow_decoder(code.image, config)
      ->decode(pt::with_holes(written.joined(), *holes), traced.log);
  traced.log.finish();
  const bool whole = written.size_bytes() != view->size_bytes() && !traced.log.forgot();
  const auto& stretches = traced.log.stretches();
  auto timed = std::find_if(stretches.begin(), stretches.end(),
                            [](const pt::StretchLog::Stretch& s) { return s.time != 0; });
  if (!whole)
    traced.begin_ns = std::max<std::uint64_t>(
        traced.begin_ns, timed == stretches.end() ? ~0ull : clock_.to_ns(timed->time));
  return traced;
}

ThreadSnapshot ProcessRecording::gather(ThreadId thread, const std::vector<pt::CpuPiece>& pieces,
                                        std::uint64_t limit) {
  const ProcessCode& code = codes_.of(thread.pid);
  pt::Tail tail(std::min<std::uint64_t>(limit, ~0ull >> 2), code.begins());
  ThreadSnapshot snapshot;
  const bool whole = pt::play_pieces(pieces, tail);
  snapshot.thread = thread;
  snapshot.engine = "pt";
  snapshot.code = code.image();
  snapshot.records = tail.records();
  snapshot.first_epoch = tail.first_epoch();
  snapshot.first = {tail.forgotten()};
  std::optional<Address> pc = pc_of(kernel_->root(), thread);
  for (const BranchRecord& record : tail.closing(pc.value_or(Address{})))
    snapshot.records.push_back(record);
  snapshot.complete = whole && tail.forgotten() == 0;
  return snapshot;
}

Result<std::vector<ThreadSnapshot>> ProcessRecording::snapshot(std::uint64_t limit) {
  if (auto ok = look(); !ok) return fail(std::move(ok.error()));
  const pt::JoinedCode code = pt::join_codes(codes_.all());
  std::vector<std::unique_ptr<Quiet>> quiet;
  for (Cpu& cpu : cpus_)
    for (Event& event : cpu.trace) quiet.push_back(std::make_unique<Quiet>(event));
  std::vector<pt::CpuTrace> traced;
  traced.reserve(cpus_.size());
  for (Cpu& cpu : cpus_) {
    auto read_cpu = read(cpu, code);
    if (!read_cpu) return fail(std::move(read_cpu.error()));
    traced.push_back(std::move(*read_cpu));
  }
  quiet.clear();
  std::vector<ThreadSnapshot> snapshots;
  for (const auto& [thread, pieces] : pt::pieces_by_thread(traced, clock_))
    snapshots.push_back(gather(thread, pieces, limit));
  return snapshots;
}

}  // namespace tailtrace::perf
