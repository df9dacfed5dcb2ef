#include "decoder/perf_data/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kHoles = kAuxTruncated | kAuxPartial | kAuxCollision;

// "GenuineIntel,6,78,3"
pt::Cpu cpu_named(std::string_view id) {
  constexpr std::string_view kIntel = "GenuineIntel,";
  pt::Cpu cpu;
  if (!id.starts_with(kIntel)) return cpu;
  unsigned numbers[3] = {};
  const char* at = id.data() + kIntel.size();
  for (unsigned& number : numbers) {
    auto [end, code] = std::from_chars(at, id.data() + id.size(), number);
    if (code != std::errc()) return cpu;
    at = end + (end != id.data() + id.size());
  }
  return {static_cast<std::uint16_t>(numbers[0]), static_cast<std::uint8_t>(numbers[1]),
          static_cast<std::uint8_t>(numbers[2])};
}

// The field that a mask marks.
std::uint64_t field_of(std::uint64_t config, std::uint64_t mask) {
  return mask == 0 ? 0 : (config & mask) >> std::countr_zero(mask);
}

}  // namespace

Result<std::shared_ptr<const PerfRecording>> PerfRecording::open(const std::string& path) {
  auto data = read_perf_data(path);
  if (!data) return fail(std::move(data.error()));
  const char* home = std::getenv("HOME");
  return make(std::move(*data), home == nullptr ? "" : std::string(home) + "/.debug");
}

Result<std::shared_ptr<const PerfRecording>> PerfRecording::make(PerfData data,
                                                                 std::string build_id_cache) {
  std::shared_ptr<PerfRecording> recording(
      new PerfRecording(std::move(data), std::move(build_id_cache)));
  recording->read_sideband();
  recording->find_threads();
  if (!recording->threads_.empty()) return std::shared_ptr<const PerfRecording>(recording);
  const std::string& name = recording->data_.name;
  return fail(ErrorCode::kBadInput, "there is no history in " + name,
              recording->data_.aux.empty() ? "it holds no trace of branches"
                                           : "it does not say which thread its trace is of",
              "record with -e intel_pt//u, -e intel_bts//u, or -b");
}

PerfRecording::PerfRecording(PerfData data, std::string build_id_cache)
    : data_(std::move(data)),
      clock_(data_.clock()),
      programs_({data_.build_ids, std::move(build_id_cache), clock_.has_value()}) {}

std::uint64_t PerfRecording::ticks(std::uint64_t time_ns) const {
  if (!clock_) return time_ns;
  return time_ns > clock_->zero_ns ? clock_->to_tsc(time_ns) : 0;
}

bool PerfRecording::is_snapshot() const {
  return data_.info(data_.auxtrace == kAuxtracePt ? kInfoPtSnapshot : kInfoBtsSnapshot) != 0;
}

std::int32_t PerfRecording::pid_of(std::int32_t tid) const {
  auto known = pids_.find(tid);
  return known == pids_.end() ? tid : known->second;
}

void PerfRecording::read_sideband() {
  std::map<std::int32_t, CpuSlotFinder> finders;
  for (const RecordRef& ref : data_.records) {
    auto record = data_.parse(ref);
    if (!record) {
      ++unreadable_;
      continue;
    }
    take(ref, *record);
    const bool tells_of_turns = std::holds_alternative<SwitchEvent>(record->body) ||
                                std::holds_alternative<LostEvent>(record->body);
    if (tells_of_turns && record->id.cpu.value_or(~0u) < kMaxCpus)
      finders[static_cast<std::int32_t>(*record->id.cpu)].add(*record);
  }
  programs_.finish();
  for (auto& [cpu, finder] : finders) slots_[cpu] = finder.take();
  queues_ = join_pieces(data_.aux, holes_, is_snapshot());
  std::size_t unused = 0;
  for (const AuxQueue& queue : queues_) {
    if (!queue.is_by_cpu())
      queues_of_threads_[queue.tid].push_back(&queue);
    else if (queue.cpu >= kMaxCpus || !queues_of_cpus_.emplace(queue.cpu, &queue).second)
      ++unused;
  }
  add_problems(unused);
}

void PerfRecording::add_problems(std::size_t unused_queues) {
  problems_ = data_.problems;
  auto add = [&](std::string what, std::string why, std::string fix = {}) {
    problems_.push_back({ErrorCode::kGaps, std::move(what), std::move(why), std::move(fix), ""});
  };
  if (lost_ != 0)
    add(fmt::format("{} records of {} are missing", lost_, data_.name),
        "perf did not keep up: mappings or switches of threads may be unknown");
  if (unreadable_ != 0)
    add(fmt::format("{} records of {} cannot be read", unreadable_, data_.name),
        "they are damaged, or of a kind that is not read here");
  const bool shows_kernel =
      data_.auxtrace == kAuxtracePt &&
      std::any_of(data_.attrs.begin(), data_.attrs.end(), [&](const EventAttr& attr) {
        return attr.type == data_.info(kInfoPmuType) && (attr.flags & kAttrExcludeKernel) == 0;
      });
  if (shows_kernel)
    add("the trace in " + data_.name + " has large gaps",
        "it shows the kernel too, whose code is not known",
        "record user code only: -e intel_pt//u");
  if (is_snapshot() && !holes_.empty())
    add("the trace in " + data_.name + " is not whole", "the hardware lost some of it");
  if (unused_queues != 0)
    add("some of the trace in " + data_.name + " is not used", "a CPU has two areas, or too many");
  if (auto missing = programs_.problem()) problems_.push_back(std::move(*missing));
}

void PerfRecording::take_aux(const RecordRef& ref, const SampleId& id, const AuxEvent& event) {
  const std::int32_t tid = id.thread ? id.thread->tid : -1;
  const std::int32_t cpu = id.cpu ? static_cast<std::int32_t>(*id.cpu) : -1;
  if (told_.size() < kMaxThreads || told_.contains(tid))
    told_[tid].push_back({ref.time_ns, cpu, event});
  if ((event.flags & kHoles) != 0)
    holes_.push_back({tid, cpu, event.offset_bytes + event.size_bytes, event.flags & kHoles});
}

void PerfRecording::take(const RecordRef& ref, const ParsedRecord& record) {
  const std::uint64_t time = ticks(ref.time_ns);
  const auto misc = load<RecordHeader>(ref.bytes).misc & kMiscCpuModeMask;
  if (record.id.thread && record.id.thread->tid > 0 && pids_.size() < kMaxThreads)
    pids_.emplace(record.id.thread->tid, record.id.thread->pid);
  if (auto* map = std::get_if<MmapEvent>(&record.body)) {
    if (misc != kMiscKernel) programs_.mapped(time, *map);
  } else if (auto* comm = std::get_if<CommEvent>(&record.body)) {
    if (names_.size() < kMaxThreads) names_[comm->thread.tid] = comm->name;
    if (pids_.size() < kMaxThreads) pids_[comm->thread.tid] = comm->thread.pid;
    if (comm->is_exec) programs_.executed(time, comm->thread.pid);
  } else if (auto* task = std::get_if<TaskEvent>(&record.body)) {
    take_task(*task);
  } else if (auto* start = std::get_if<ItraceStartEvent>(&record.body)) {
    if (started_.size() < kMaxThreads) started_.insert(start->thread.tid);
  } else if (auto* lost = std::get_if<LostEvent>(&record.body)) {
    lost_ += lost->count;
  } else if (auto* aux = std::get_if<AuxEvent>(&record.body)) {
    take_aux(ref, record.id, *aux);
  } else if (auto* sample = std::get_if<Sample>(&record.body)) {
    if (!sample->thread || sample->branches.empty()) return;
    if (pids_.size() < kMaxThreads) pids_.emplace(sample->thread->tid, sample->thread->pid);
    const bool is_known = stacks_.contains(sample->thread->tid);
    if (!is_known && stacks_.size() >= kMaxThreads) return;
    stacks_[sample->thread->tid].push_back(static_cast<std::uint32_t>(&ref - data_.records.data()));
  }
}

void PerfRecording::take_task(const TaskEvent& task) {
  if (!task.begins || parents_.size() >= kMaxThreads) return;
  parents_[task.thread.tid] = task.parent;
  pids_[task.thread.tid] = task.thread.pid;
  if (auto name = names_.find(task.parent.tid); name != names_.end())
    names_.emplace(task.thread.tid, name->second);
  if (task.thread.pid != task.parent.pid) programs_.forked(task.thread.pid, task.parent.pid);
}

// Whether it is one that perf began with, or one that such a one made.
bool PerfRecording::is_traced(ThreadId thread, const Roots& roots) const {
  constexpr int kMaxGenerations = 1000;
  if (roots.pids.contains(thread.pid)) return true;
  std::int32_t tid = thread.tid;
  for (int i = 0; i < kMaxGenerations; ++i) {
    if (roots.tids.contains(tid)) return true;
    auto parent = parents_.find(tid);
    if (parent == parents_.end()) return false;
    tid = parent->second.tid;
  }
  return false;
}

void PerfRecording::add_threads(const std::set<std::int32_t>& tids) {
  std::string engine = data_.aux.empty() ? "lbr" : data_.auxtrace == kAuxtraceBts ? "bts" : "pt";
  for (std::int32_t tid : tids) {
    if (tid <= 0 || threads_.size() >= kMaxThreads) continue;
    auto name = names_.find(tid);
    threads_.push_back({{pid_of(tid), tid}, name == names_.end() ? "" : name->second, engine});
  }
  std::sort(threads_.begin(), threads_.end(),
            [](const Thread& a, const Thread& b) { return a.thread < b.thread; });
}

// Those that had a CPU while it was traced.
void PerfRecording::find_switched(std::set<std::int32_t>& tids) const {
  Roots roots;
  bool all = false;  // that there are in the system
  for (const auto& [cpu, queue] : queues_of_cpus_) {
    if (queue->tid > 0) roots.tids.insert(queue->tid);
    all = all || queue->tid <= 0;
  }
  roots.tids.insert(started_.begin(), started_.end());
  for (std::int32_t tid : roots.tids) roots.pids.insert(pid_of(tid));
  std::set<ThreadId> seen;
  for (const auto& [cpu, slots] : slots_)
    for (const CpuSlot& slot : slots.slots)
      if (seen.size() < kMaxThreads) seen.insert(slot.thread);
  for (ThreadId thread : seen)
    if (all || is_traced(thread, roots)) tids.insert(thread.tid);
  // Where nobody told of switches there may have been one thread only.
  if (slots_.empty() && roots.tids.size() == 1) tids.insert(*roots.tids.begin());
}

void PerfRecording::find_threads() {
  std::set<std::int32_t> tids;
  for (const auto& [tid, queues] : queues_of_threads_) tids.insert(tid);
  const bool by_cpu = !queues_of_cpus_.empty();
  if (by_cpu && data_.auxtrace == kAuxtraceBts)
    for (const auto& [tid, told] : told_) tids.insert(tid);
  else if (by_cpu)
    find_switched(tids);
  if (queues_.empty())
    for (const auto& [tid, samples] : stacks_) tids.insert(tid);
  add_threads(tids);
}

pt::DecoderConfig PerfRecording::decoder_config() const {
  pt::DecoderConfig config;
  config.only_64_bit_code = true;
  config.cpu = cpu_named(data_.cpu_id);
  config.errata = pt::errata_of(config.cpu);
  config.timing.cpuid_15_ebx = static_cast<std::uint32_t>(data_.info(kInfoTscCtcN));
  config.timing.cpuid_15_eax = static_cast<std::uint32_t>(data_.info(kInfoTscCtcD));
  config.timing.nominal_ratio = static_cast<std::uint8_t>(data_.info(kInfoMaxNonTurboRatio));
  for (const EventAttr& attr : data_.attrs)
    if (attr.type == data_.info(kInfoPmuType) && (attr.config & data_.info(kInfoMtcBit)) != 0)
      config.timing.mtc_period =
          static_cast<std::uint8_t>(field_of(attr.config, data_.info(kInfoMtcFreqBits)));
  return config;
}

OpenedThread PerfRecording::frame_of(const Thread& thread) const {
  OpenedThread opened;
  opened.frame.thread = thread.thread;
  opened.frame.engine = thread.engine;
  const RecordedPrograms::Program& program = programs_.of(thread.thread.pid);
  opened.frame.code = program.image;
  opened.frame.former_maps = program.former_maps();
  opened.maps = program.maps();
  opened.problems = problems_;
  return opened;
}

void PerfRecording::put_records(OpenedThread& opened, ThreadSnapshot records,
                                std::uint64_t limit) const {
  static_cast<ThreadFrame&>(records) = opened.frame;
  auto kept = std::make_shared<const ThreadSnapshot>(std::move(records));
  OpenedThread with = records_in_place(opened.frame, kept, kept->records, limit);
  opened.frame = std::move(with.frame);
  opened.source = std::move(with.source);
}

Result<OpenedThread> PerfRecording::open_thread(ThreadId thread, std::uint64_t limit) const {
  auto found = std::find_if(threads_.begin(), threads_.end(),
                            [&](const Thread& t) { return t.thread == thread; });
  if (found == threads_.end())
    return fail(ErrorCode::kGone,
                fmt::format("there is no thread {} in {}", thread.tid, data_.name));
  OpenedThread opened = frame_of(*found);
  const bool by_thread = queues_of_threads_.contains(thread.tid);
  const std::uint64_t most = std::min(limit, kMostRecords);
  Result<void> done;
  if (queues_.empty())
    done = open_stacks(*found, most, opened);
  else if (data_.auxtrace == kAuxtraceBts)
    done = open_bts(*found, most, opened);
  else
    done =
        by_thread ? open_pt_by_thread(*found, most, opened) : open_pt_by_cpu(*found, most, opened);
  if (!done) return fail(std::move(done.error()));
  return opened;
}

}  // namespace tailtrace::perf
