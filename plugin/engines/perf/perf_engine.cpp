#include "plugin/engines/perf/perf_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "decoder/history/markers.h"
#include "plugin/engines/perf/kernel_code.h"
#include "plugin/engines/perf/known_trouble.h"

namespace tailtrace::perf {
namespace {

tl::unexpected<Error> not_recorded(ThreadId thread) {
  return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
}

ProcessCode::Read reader_of(const PerfConfig& config, ThreadId thread) {
  if (!config.read_memory) return {};
  return [read = config.read_memory, thread](Address address, std::span<std::uint8_t> out) {
    return read(thread, address, out);
  };
}

// A hit with registers takes 64 bytes and eight for each of those.
std::uint64_t marker_ring_bytes(const PerfConfig& config) {
  constexpr std::uint64_t kMostHit_bytes = 256;
  return mappable_size(config.marker_hits * kMostHit_bytes);
}

// Those that it does not have yet.
Result<void> add_markers(const std::vector<BreakpointSpec>& specs, MarkerSet& markers) {
  while (markers.size() < specs.size())
    if (auto ok = markers.add(specs[markers.size()]); !ok) return ok;
  return {};
}

Result<void> take_maps(Sideband& sideband, std::vector<MapChange>& into) {
  auto told = sideband.take();
  if (!told) return fail(std::move(told.error()));
  for (ParsedRecord& record : *told)
    if (auto* map = std::get_if<MmapEvent>(&record.body))
      into.push_back({sideband.time_of(record), std::move(*map)});
  return {};
}

// The area has what the kernel did, too; samples are there where it is refused, or absent.
Recorders open_bts(Kernel& kernel, const PerfConfig& config, ThreadId thread,
                   std::vector<Error>& remarks) {
  std::optional<Address> start = pc_of(kernel.root(), thread);
  Recorders area = record_bts_area(kernel, config, thread, start);
  if (area) return area;
  Recorders samples = record_bts_samples(kernel, config, thread, start);
  if (!samples)
    return area.error().code == ErrorCode::kNoEngine ? std::move(samples) : std::move(area);
  remarks.push_back(std::move(area.error()));
  remarks.back().now = "branch samples are recorded instead";
  return samples;
}

// `remarks` gets what turned out otherwise than asked.
Recorders open_recorder(Kernel& kernel, Hardware hardware, const PerfConfig& config,
                        ThreadId thread, std::vector<Error>& remarks) {
  if (config.kernel && hardware != Hardware::kPt)
    return fail(ErrorCode::kUsage, "cannot record kernel code", "only Intel PT shows it",
                "--engine=pt", "user code can be recorded without");
  switch (hardware) {
    case Hardware::kPt:
      return record_pt(kernel, config, thread);
    case Hardware::kBts:
      return open_bts(kernel, config, thread, remarks);
    case Hardware::kLbr:
      break;
  }
  return record_lbr(kernel, config, thread);
}

Purpose purpose_of(Hardware hardware) {
  switch (hardware) {
    case Hardware::kPt:
      return Purpose::kPt;
    case Hardware::kBts:
      return Purpose::kBtsSamples;
    case Hardware::kLbr:
      break;
  }
  return Purpose::kLbr;
}

}  // namespace

PerfEngine::PerfEngine(Kernel& kernel, Hardware hardware, PerfConfig config)
    : kernel_(kernel), hardware_(hardware), config_(std::move(config)) {}

PerfEngine::~PerfEngine() = default;

std::string_view PerfEngine::name() const {
  switch (hardware_) {
    case Hardware::kPt:
      return "pt";
    case Hardware::kBts:
      return "bts";
    case Hardware::kLbr:
      break;
  }
  return "lbr";
}

Result<std::unique_ptr<ProcessCode>> PerfEngine::new_code(ThreadId thread) {
  auto code = std::make_unique<ProcessCode>(thread.pid, reader_of(config_, thread));
  if (!config_.kernel || hardware_ != Hardware::kPt) return code;
  if (!kernel_code_) {
    auto sections = read_kernel_code(kernel_.root());
    if (!sections) return fail(std::move(sections.error()));
    auto image = image_of(std::move(*sections));
    if (!image) return fail(std::move(image.error()));
    kernel_code_ = std::move(*image);
  }
  code->begin_with(*kernel_code_);
  return code;
}

Result<void> PerfEngine::start(ThreadId thread) {
  if (is_recording(thread)) return {};
  Process& process = processes_[thread.pid];
  if (!process.code) {
    auto code = new_code(thread);
    if (!code) {
      processes_.erase(thread.pid);
      return fail(std::move(code.error()));
    }
    process.code = std::move(*code);
  }
  Recorders recorder = open_recorder(kernel_, hardware_, config_, thread, remarks_);
  if (!recorder) {
    if (process.threads == 0) processes_.erase(thread.pid);
    return fail(std::move(recorder.error()));
  }
  if ((*recorder)->shortened()) remarks_.push_back(*(*recorder)->shortened());
  MarkerSet markers(kernel_, thread.tid, marker_ring_bytes(config_));
  if (auto ok = add_markers(config_.markers, markers); !ok) {
    if (process.threads == 0) processes_.erase(thread.pid);
    return ok;
  }
  for (Error& remark : markers.take_remarks()) remarks_.push_back(std::move(remark));
  markers_.insert_or_assign(thread, std::move(markers));
  if (recorders_.empty())
    for (Error& known : known_trouble_with(purpose_of(hardware_), read_machine(kernel_.root())))
      remarks_.push_back(std::move(known));
  ++process.threads;
  recorders_.emplace(thread, std::move(*recorder));
  watch_code(thread);
  return {};
}

// One that is ending has nothing more to record.
Result<void> PerfEngine::reconfigure(PerfConfig config) {
  config_ = std::move(config);
  Result<void> done;
  for (auto& [thread, recorder] : recorders_) {
    auto ok = recorder->reconfigure(config_);
    if (ok) ok = add_markers(config_.markers, markers_.at(thread));
    if (!ok && ok.error().code != ErrorCode::kGone && done) done = std::move(ok);
  }
  return done;
}

// Without it the code is known as it is when a trace is read. What it is now is read now: it may be
// gone when somebody asks.
void PerfEngine::watch_code(ThreadId thread) {
  Process& process = processes_[thread.pid];
  Sideband sideband(kernel_);
  if (sideband.watch({thread.tid, -1}))
    process.told.insert_or_assign(thread.tid, std::move(sideband));
  if (process.threads == 1) (void)code_now(thread).has_value();
}

Result<void> PerfEngine::stop(ThreadId thread) {
  if (recorders_.erase(thread) == 0) return not_recorded(thread);
  markers_.erase(thread);
  auto process = processes_.find(thread.pid);
  process->second.told.erase(thread.tid);
  if (--process->second.threads == 0) processes_.erase(process);
  return {};
}

bool PerfEngine::is_recording(ThreadId thread) const { return recorders_.contains(thread); }

// A process that is gone leaves its trace behind, to be read with the code as it was seen last.
Result<CodeInUse> PerfEngine::code_now(ThreadId thread) const {
  Process& process = processes_.at(thread.pid);
  std::vector<MapChange> told;
  for (auto& [tid, sideband] : process.told)
    if (auto ok = take_maps(sideband, told); !ok) return fail(std::move(ok.error()));
  const std::uint64_t now = process.told.empty() ? 0 : process.told.begin()->second.now();
  auto updated = process.code->update(std::move(told), now);
  if (!updated && process.code->image()->empty()) return fail(std::move(updated.error()));
  return CodeInUse{process.code->image(), process.code->begins(), process.code->former_maps()};
}

Result<ThreadRecorder*> PerfEngine::refreshed(ThreadId thread, CodeInUse& code) const {
  auto recorder = recorders_.find(thread);
  if (recorder == recorders_.end()) return not_recorded(thread);
  auto now = code_now(thread);
  if (!now) return fail(std::move(now.error()));
  code = std::move(*now);
  if (auto ok = recorder->second->refresh(code); !ok) return fail(std::move(ok.error()));
  return recorder->second.get();
}

Result<Position> PerfEngine::head(ThreadId thread) const {
  CodeInUse code;
  auto recorder = refreshed(thread, code);
  if (!recorder) return fail(std::move(recorder.error()));
  return (*recorder)->end();
}

Result<ThreadSnapshot> PerfEngine::snapshot(ThreadId thread, const Stop& stop,
                                            std::uint64_t limit) {
  CodeInUse code;
  auto recorder = refreshed(thread, code);
  if (!recorder) return fail(std::move(recorder.error()));
  ThreadSnapshot snapshot;
  snapshot.thread = thread;
  snapshot.engine = name();
  snapshot.code = code.image;
  snapshot.former_maps = std::move(code.former_maps);
  (*recorder)->fill(stop, snapshot);
  if (auto ok = merge_hits(thread, snapshot); !ok) return fail(std::move(ok.error()));
  const std::uint64_t closing = closing_records(snapshot);
  keep_newest(snapshot, limit > ~closing ? limit : limit + closing);
  return snapshot;
}

Result<void> PerfEngine::merge_hits(ThreadId thread, ThreadSnapshot& snapshot) {
  hits_.clear();
  logs_.clear();
  auto markers = markers_.find(thread);
  if (markers == markers_.end() || markers->second.size() == 0) return {};
  markers->second.retry();
  auto logs = markers->second.read_all(config_.marker_hits);
  if (!logs) return fail(std::move(logs.error()));
  logs_ = std::move(*logs);
  for (const auto& [slot, log] : logs_)
    for (const MarkerHit& hit : log.hits) hits_.push_back({slot, hit, {}});
  std::stable_sort(hits_.begin(), hits_.end(),
                   [](const Hit& a, const Hit& b) { return a.hit.time_ns < b.hit.time_ns; });
  auto clock = markers->second.time_conversion();
  std::vector<MarkedMoment> moments;
  for (const Hit& hit : hits_)
    moments.push_back({hit.hit.ip, config_.markers[hit.marker].on == BreakOn::kExecute,
                       clock && clock->mult != 0 ? clock->to_tsc(hit.hit.time_ns) : 0,
                       static_cast<std::uint16_t>(hit.marker)});
  MarkedSnapshot marked = put_markers(snapshot, moments);
  snapshot = std::move(marked.snapshot);
  for (std::size_t i = 0; i < hits_.size(); ++i) hits_[i].place = marked.places[i];
  return {};
}

Result<std::uint64_t> PerfEngine::buffer_bytes(ThreadId thread) const {
  auto recorder = recorders_.find(thread);
  if (recorder == recorders_.end()) return not_recorded(thread);
  return recorder->second->buffer_bytes();
}

std::vector<Error> PerfEngine::take_remarks() { return std::exchange(remarks_, {}); }

Result<void> try_hardware(Kernel& kernel, Hardware hardware) {
  PerfConfig config;
  config.records.ring_records = 1024;
  config.buffer_bytes = page_size();
  config.trial = true;
  std::vector<Error> remarks;
  auto opened = open_recorder(kernel, hardware, config, {::getpid(), ::gettid()}, remarks);
  if (!opened) return fail(std::move(opened.error()));
  return {};
}

}  // namespace tailtrace::perf
