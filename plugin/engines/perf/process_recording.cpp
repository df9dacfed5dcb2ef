#include "plugin/engines/perf/process_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "decoder/base/file.h"
#include "decoder/perf/aux_area.h"
#include "plugin/engines/perf/branch_events.h"
#include "plugin/engines/perf/pt_settings.h"
#include "plugin/engines/tasks.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kSideband_bytes = 128u << 10;

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

perf_event_attr sideband_attr(std::uint64_t fields) {
  perf_event_attr attr = plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
  attr.sample_type = fields;
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

Purpose ProcessRecording::purpose() const {
  if (hardware_ == Hardware::kPt) return Purpose::kPt;
  if (hardware_ == Hardware::kLbr) return Purpose::kLbr;
  return area_ ? Purpose::kBtsArea : Purpose::kBtsSamples;
}

Result<perf_event_attr> ProcessRecording::hardware_attr() const {
  if (hardware_ == Hardware::kLbr) return branch_stack_attr(config_);
  if (purpose() == Purpose::kBtsSamples) return branch_sample_attr();
  auto pmu = read_pmu(kernel_->root(), hardware_ == Hardware::kPt ? "intel_pt" : "intel_bts");
  if (!pmu) return fail(explain(*kernel_, {purpose(), Step::kOpen, ENOENT, {codes_.first(), -1}}));
  if (hardware_ == Hardware::kPt) return pt_attr(*pmu, config_, drained_buffer_for(config_));
  perf_event_attr attr = plain_attr(pmu->type, 0);
  attr.sample_id_all = 1;
  attr.write_backward = 1;
  attr.aux_watermark =
      static_cast<__u32>(std::min<std::uint64_t>(drained_buffer_for(config_) / 4, ~0u));
  return attr;
}

Result<perf_event_attr> ProcessRecording::attr() const {
  auto attr = hardware_attr();
  if (!attr) return attr;
  if (hardware_ == Hardware::kPt)
    attr->write_backward = 1;
  else
    attr->sample_type |= kSidebandFields;
  attr->disabled = 1;
  inherit(*attr, children_);
  return attr;
}

Result<Event> ProcessRecording::open_trace(const perf_event_attr& attr, Target target,
                                           bool has_buffer) {
  const std::uint64_t size = drained_buffer_for(config_);
  if (has_buffer && hardware_ == Hardware::kPt)
    return open_aux_event(*kernel_, Purpose::kPt, attr, target, size);
  auto event = Event::open(*kernel_, purpose(), attr, target);
  if (!event || !has_buffer) return event;
  auto ready = area_ ? event->map_ring(kSideband_bytes, Event::WhenFull::kOverwrite)
                     : event->map_largest_ring(size, Event::WhenFull::kOverwrite);
  if (!ready) return fail(std::move(ready.error()));
  if (!area_) return event;
  if (auto got = event->map_aux(size, Event::WhenFull::kStop); !got)
    return fail(std::move(got.error()));
  return event;
}

// Who is on the CPU, and what those do to their code.
Result<void> ProcessRecording::open_sideband(Target target, Cpu& cpu) {
  perf_event_attr attr = sideband_attr(kSidebandFields);
  inherit(attr, children_);
  auto event = Event::open(*kernel_, Purpose::kSideband, attr, target);
  if (!event) return fail(std::move(event.error()));
  auto ready = cpu.sideband.empty() ? event->map_ring(kSideband_bytes, Event::WhenFull::kOverwrite)
                                    : event->write_into(cpu.sideband.front());
  if (!ready) return ready;
  cpu.sideband.push_back(std::move(*event));
  return cpu.told.watch(target,
                        children_ ? Sideband::Inherit::kProcesses : Sideband::Inherit::kThreads);
}

Result<void> ProcessRecording::open_thread(const perf_event_attr& attr, Target target, Cpu& cpu) {
  if (auto ok = open_sideband(target, cpu); !ok) return ok;
  auto trace = open_trace(attr, target, cpu.trace.empty());
  if (!trace) return fail(std::move(trace.error()));
  if (!cpu.trace.empty())
    if (auto ok = trace->write_into(cpu.trace.front()); !ok) return ok;
  if (cpu.trace.empty() && trace->shortened()) remarks_.push_back(*trace->shortened());
  cpu.trace.push_back(std::move(*trace));
  return {};
}

Result<void> ProcessRecording::open_cpus(const std::vector<ThreadId>& threads) {
  auto attr = this->attr();
  if (!attr) return fail(std::move(attr.error()));
  auto cpus = online_cpus(kernel_->root());
  if (!cpus) return fail(std::move(cpus.error()));
  for (int number : *cpus) {
    Cpu cpu{{}, {}, Sideband(*kernel_)};
    for (ThreadId thread : threads)
      if (auto ok = open_thread(*attr, {thread.tid, number}, cpu);
          !ok && ok.error().code != ErrorCode::kGone)
        return ok;
    if (!cpu.trace.empty()) cpus_.push_back(std::move(cpu));
  }
  if (!cpus_.empty()) return {};
  return fail(ErrorCode::kGone, fmt::format("cannot record process {}", codes_.first()),
              "there is no such process");
}

// The area of BTS has what the kernel did, too; samples are there where it is refused, or absent.
Result<void> ProcessRecording::open_all(const std::vector<ThreadId>& threads) {
  auto open = [&]() -> Result<void> {
    if (auto ok = open_cpus(threads); !ok) return ok;
    return note_clock();
  };
  area_ = hardware_ == Hardware::kBts;
  auto opened = open();
  if (opened || !area_) return opened;
  area_ = false;
  cpus_.clear();
  remarks_.clear();
  auto samples = open();
  if (!samples) return samples;
  remarks_.push_back(std::move(opened.error()));
  remarks_.back().now = "branch samples are recorded instead";
  return {};
}

// A thread with an event that is not inherited never shares its events with those that it made:
// then the hardware is switched off and on between them, which the trace shows. The same for
// threads that are made while their maker is anchored, and one another.
bool ProcessRecording::open_anchors(ThreadId thread) {
  std::vector<perf_event_attr> kinds = {plain_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY)};
  // Before Linux 6.2, events of the core PMU are a group of their own.
  if (hardware_ != Hardware::kPt)
    kinds.push_back(plain_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES));
  bool all = true;
  for (perf_event_attr& attr : kinds) {
    attr.disabled = attr.type == PERF_TYPE_HARDWARE ? 1 : 0;
    auto anchor = Event::open(*kernel_, Purpose::kSideband, attr, {thread.tid, -1});
    if (anchor)
      anchors_.push_back(std::move(*anchor));
    else
      all = false;
  }
  return all;
}

Result<void> ProcessRecording::note_clock() {
  auto clock = cpus_.front().sideband.front().time_conversion();
  if (clock) clock_ = *clock;
  if (hardware_ != Hardware::kPt && !area_) return {};
  if (!clock)
    return fail(ErrorCode::kNoEngine, "cannot record by CPU",
                "the kernel's clock is not the processor's counter here: nobody can tell whose "
                "trace it is",
                "record thread by thread, or by CPU with branch samples");
  if (area_) return {};
  decoder_ = pt_decoder_config(read_machine(kernel_->root()).cpu,
                               *read_pmu(kernel_->root(), "intel_pt"), config_);
  return {};
}

Result<ProcessRecording> ProcessRecording::start(Kernel& kernel, Hardware hardware,
                                                 const PerfConfig& config, std::int32_t pid,
                                                 bool children) {
  ProcessRecording recording(kernel, hardware, config, pid, children);
  recording.config_.tsc = true;
  const std::vector<ThreadId> threads = threads_of(kernel.root(), pid);
  for (ThreadId thread : threads) recording.adopt(thread);
  if (auto ok = recording.open_all(threads); !ok) return fail(std::move(ok.error()));
  for (ThreadId thread : threads) {
    recording.names_[thread.tid] = name_of(kernel.root(), thread);
    if (auto pc = pc_of(kernel.root(), thread)) recording.starts_[thread] = *pc;
  }
  if (auto ok = recording.look(); !ok) return fail(std::move(ok.error()));
  if (auto ok = recording.keep_areas(); !ok) return fail(std::move(ok.error()));
  for (Cpu& cpu : recording.cpus_)
    for (Event& event : cpu.trace)
      if (auto ok = event.enable(); !ok) return fail(std::move(ok.error()));
  return recording;
}

Result<void> ProcessRecording::keep_areas() {
  if (!area_) return {};
  std::vector<std::span<Event>> events;
  for (Cpu& cpu : cpus_) events.push_back(cpu.trace);
  auto keeper = AreaKeeper::start(std::move(events), clock_);
  if (!keeper) return fail(std::move(keeper.error()));
  keeper_ = std::move(*keeper);
  return {};
}

std::uint64_t ProcessRecording::now_ns() const {
  const std::uint64_t tsc = cpus_.front().told.now();
  return tsc == 0 ? 0 : clock_.to_ns(tsc);
}

void ProcessRecording::adopt(ThreadId thread) {
  if (open_anchors(thread)) anchored_[thread.tid] = 0;
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
    if (auto* task = std::get_if<TaskEvent>(&told.record.body))
      note_task(*task, now == 0 ? ~0ull : now_ns());
  }
  codes_.update(std::move(all), now);
  return {};
}

void ProcessRecording::note_task(const TaskEvent& task, std::uint64_t now_ns) {
  const std::int32_t tid = task.thread.tid;
  if (!task.begins) {
    ended_.insert(tid);
    return;
  }
  names_[tid] = names_[task.parent.tid];
  if (ended_.erase(tid) != 0) {
    anchored_.erase(tid);
    apart_.erase(tid);
    stops_.erase(task.thread);
  }
  auto parent = anchored_.find(task.parent.tid);
  if (parent != anchored_.end() && parent->second <= task.time_ns) apart_.insert(tid);
  if (!anchored_.contains(tid) && open_anchors(task.thread)) anchored_[tid] = now_ns;
}

std::string ProcessRecording::name(ThreadId thread) const {
  auto name = names_.find(thread.tid);
  return name == names_.end() ? std::string() : name->second;
}

std::optional<Address> ProcessRecording::stop_of(ThreadId thread) const {
  auto stop = stops_.find(thread);
  return stop == stops_.end() ? pc_of(kernel_->root(), thread) : stop->second;
}

// Who was there before the oldest record that is left is not known.
Result<ProcessRecording::Slots> ProcessRecording::read_slots(const Cpu& cpu) const {
  const Event& event = cpu.sideband.front();
  auto ring = read_still(event);
  if (!ring) return fail(std::move(ring.error()));
  auto found = find_cpu_slots(ring->records, {kSidebandFields, true, 0, 0});
  if (!found) return fail(std::move(found.error()));
  Slots slots{std::move(*found), 0};
  if (0 - event.data_head() > event.ring().size())
    slots.begin_ns = slots.slots.forget_before_first_switch();
  return slots;
}

Result<pt::CpuTrace> ProcessRecording::read(Cpu& cpu, const pt::JoinedCode& code) {
  const Event& buffer = cpu.trace.front();
  auto view = order_aux_area(buffer.aux(), buffer.aux_head(), AuxHead::kOffset);
  if (!view) return fail(std::move(view.error()));
  const AuxView written = without_leading_zeros(*view);
  auto holes = read_aux_holes(buffer, ~0ull, buffer.aux().size());
  if (!holes) return fail(std::move(holes.error()));
  auto slots = read_slots(cpu);
  if (!slots) return fail(std::move(slots.error()));
  pt::CpuTrace traced;
  traced.slots = std::move(slots->slots);
  traced.begin_ns = slots->begin_ns;
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
  snapshot.former_maps = code.former_maps();
  snapshot.records = tail.records();
  snapshot.first_epoch = tail.first_epoch();
  snapshot.first = {tail.forgotten()};
  for (const BranchRecord& record : tail.closing(stop_of(thread).value_or(Address{})))
    snapshot.records.push_back(record);
  snapshot.complete = whole && tail.forgotten() == 0;
  return snapshot;
}

Result<std::vector<ThreadSnapshot>> ProcessRecording::snapshot(std::uint64_t limit) {
  if (auto ok = look(); !ok) return fail(std::move(ok.error()));
  return hardware_ == Hardware::kPt ? pt_snapshot(limit) : branch_snapshot(limit);
}

ProcessRecording::AllQuiet ProcessRecording::hold() {
  AllQuiet quiet;
  for (Cpu& cpu : cpus_)
    for (Event& event : cpu.trace) quiet.push_back(std::make_unique<Quiet>(event));
  return quiet;
}

Result<std::vector<ThreadSnapshot>> ProcessRecording::pt_snapshot(std::uint64_t limit) {
  const pt::JoinedCode code = pt::join_codes(codes_.all());
  AllQuiet quiet = hold();
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
