#include "plugin/cli/record_by_hardware.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "decoder/base/own_folder.h"
#include "plugin/cli/child_signals.h"
#include "plugin/cli/hardware_places.h"
#include "plugin/cli/hit_report.h"
#include "plugin/cli/record_only.h"
#include "plugin/cli/say_recorded.h"
#include "plugin/engines/perf/lossless.h"
#include "plugin/engines/perf/process_recording.h"
#include "plugin/engines/perf/pt_settings.h"
#include "plugin/provider/followed_program.h"
#include "plugin/provider/kept_recording.h"
#include "plugin/provider/trace_provider.h"

namespace tailtrace {
namespace {

using perf::Hardware;

// Of a recording without loss, 32 bytes each: what is beyond is the oldest.
constexpr std::uint64_t kMostRecords = 1ull << 25;
constexpr int kLongestWait_ms = 20;

// One way to record. The first thread stands when it begins; an error then ends it all, and later
// ones are told at the end.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual Result<void> begins(ThreadId thread) = 0;
  virtual Result<void> ends(ThreadId thread, Address pc, KeptRecording& kept) = 0;
  virtual Result<void> meanwhile() { return {}; }
  // As perf::PerfEngine::reconfigure; only where places may come later.
  virtual Result<void> reconfigure(const perf::PerfConfig&) { return {}; }
  virtual bool has_to_be_fast() const { return false; }
  virtual Result<void> finish(KeptRecording&) { return {}; }
  virtual std::vector<Error> take_remarks() { return {}; }
  virtual void report(std::FILE*) const {}
};

class ByThread final : public Recorder {
 public:
  ByThread(Hardware hardware, const perf::PerfConfig& config)
      : limit_(config.records.ring_records),
        provider_(perf::real_kernel(), hardware, config),
        report_(config.markers) {}

  Result<void> begins(ThreadId thread) override { return provider_.start(thread); }
  Result<void> ends(ThreadId thread, Address pc, KeptRecording& kept) override {
    auto taken = provider_.snapshot(thread, pc, limit_);
    if (!taken) return fail(std::move(taken.error()));
    kept.add(*taken);
    report_.add(thread, provider_.engine()->last_logs());
    return provider_.stop(thread);
  }
  Result<void> reconfigure(const perf::PerfConfig& config) override {
    while (report_.watches() < config.markers.size())
      report_.watch(config.markers[report_.watches()]);
    for (ThreadId thread : provider_.threads()) report_.maps_changed(thread.pid);
    return provider_.engine()->reconfigure(config);
  }
  std::vector<Error> take_remarks() override { return provider_.take_remarks(); }
  void report(std::FILE* err) const override {
    if (report_.watches() != 0) report_.print(err, {});
  }

 private:
  std::uint64_t limit_;
  TraceProvider provider_;
  HitReport report_;
};

class ByCpu final : public Recorder {
 public:
  ByCpu(Hardware hardware, const perf::PerfConfig& config, bool children)
      : hardware_(hardware), config_(config), children_(children) {}

  Result<void> begins(ThreadId thread) override {
    if (recording_) {
      recording_->adopt(thread);
      return {};
    }
    auto started = perf::ProcessRecording::start(perf::real_kernel(), hardware_, config_,
                                                 thread.pid, children_);
    if (!started) return fail(std::move(started.error()));
    recording_ = std::make_unique<perf::ProcessRecording>(std::move(*started));
    return {};
  }
  Result<void> ends(ThreadId thread, Address pc, KeptRecording& kept) override {
    kept.note_process(thread.pid);
    recording_->stands_last(thread, pc);
    return recording_->look();
  }
  Result<void> finish(KeptRecording& kept) override {
    auto taken = recording_->snapshot(config_.records.ring_records);
    if (!taken) return fail(std::move(taken.error()));
    for (const ThreadSnapshot& snapshot : *taken)
      kept.add(snapshot, recording_->name(snapshot.thread));
    return {};
  }
  std::vector<Error> take_remarks() override { return recording_->take_remarks(); }

 private:
  Hardware hardware_;
  perf::PerfConfig config_;
  bool children_;
  std::unique_ptr<perf::ProcessRecording> recording_;
};

class WithoutLoss final : public Recorder {
 public:
  // Traces are put into files beside `keep` until they are decoded.
  WithoutLoss(Hardware hardware, const perf::PerfConfig& config, std::string keep)
      : hardware_(hardware), config_(config), keep_(std::move(keep)) {}
  ~WithoutLoss() override {
    for (const auto& [thread, lossless] : threads_) ::unlink(path_of(thread).c_str());
  }

  bool has_to_be_fast() const override { return true; }
  Result<void> begins(ThreadId thread) override {
    auto started =
        perf::Lossless::start(perf::real_kernel(), hardware_, config_, thread, path_of(thread));
    if (!started) return fail(std::move(started.error()));
    if (started->shortened()) remarks_.push_back(*started->shortened());
    threads_.emplace(thread, std::move(*started));
    return {};
  }
  Result<void> meanwhile() override {
    for (auto& [thread, lossless] : threads_)
      if (auto drained = lossless.drain(); !drained) return fail(std::move(drained.error()));
    if (threads_.empty()) return {};
    // The program's stops wait as well, whoever's buffer fills.
    return threads_.begin()->second.wait(
        std::max(1, kLongestWait_ms / static_cast<int>(threads_.size())));
  }
  Result<void> reconfigure(const perf::PerfConfig& config) override {
    config_ = config;
    Result<void> done;
    for (auto& [thread, lossless] : threads_)
      if (auto ok = lossless.reconfigure(config); !ok && done) done = std::move(ok);
    return done;
  }
  Result<void> ends(ThreadId thread, Address pc, KeptRecording& kept) override {
    auto lossless = threads_.find(thread);
    if (lossless == threads_.end()) return {};
    auto taken = lossless->second.snapshot(pc, kMostRecords);
    if (auto trouble = lossless->second.backpressure()) remarks_.push_back(std::move(*trouble));
    ::unlink(path_of(thread).c_str());
    threads_.erase(lossless);
    if (!taken) return fail(std::move(taken.error()));
    kept.add(*taken);
    return {};
  }
  std::vector<Error> take_remarks() override { return std::exchange(remarks_, {}); }

 private:
  std::string path_of(ThreadId thread) const {
    return fmt::format("{}.{}.trace", keep_, thread.tid);
  }

  Hardware hardware_;
  perf::PerfConfig config_;
  std::string keep_;
  std::map<ThreadId, perf::Lossless> threads_;
  std::vector<Error> remarks_;
};

Hardware hardware_of(EngineChoice engine) {
  if (engine == EngineChoice::kBts) return Hardware::kBts;
  return engine == EngineChoice::kLbr ? Hardware::kLbr : Hardware::kPt;
}

Result<perf::PerfConfig> config_of(const ServeOptions& options,
                                   const HardwareRecording& recording) {
  perf::PerfConfig config;
  config.records.ring_records = options.ring_records;
  config.kernel = recording.kernel;
  if (auto ok = perf::apply_pt_settings(recording.pt_settings, config); !ok)
    return fail(std::move(ok.error()));
  return config;
}

// Debug registers wait at addresses of a program that is gone.
Result<void> left_program(const std::string& program) {
  return fail(ErrorCode::kUsage, "only what ran of " + program + " itself was watched",
              "it executed another program in its place", "name that one behind `--`");
}

std::unique_ptr<Recorder> recorder_of(const ServeOptions& options,
                                      const HardwareRecording& recording,
                                      const perf::PerfConfig& config, const std::string& keep) {
  const Hardware hardware = hardware_of(options.engine);
  if (recording.by_cpu) return std::make_unique<ByCpu>(hardware, config, recording.children);
  if (recording.lossless) return std::make_unique<WithoutLoss>(hardware, config, keep);
  return std::make_unique<ByThread>(hardware, config);
}

}  // namespace

Result<void> check(const HardwareRecording& recording, EngineChoice engine) {
  auto misused = [](const char* why, const char* fix) {
    return fail(ErrorCode::kUsage, "cannot record so", why, fix);
  };
  if (recording.children && !recording.by_cpu)
    return misused("processes that it makes are recorded by CPU only", "--by-cpu");
  if (recording.lossless && recording.by_cpu)
    return misused("by CPU the newest part is kept, not everything", "--lossless without --by-cpu");
  if (recording.any_breakpoints() && (recording.lossless || recording.by_cpu))
    return misused("hardware breakpoints belong to recordings thread by thread",
                   "--watch, --resume-at and --pause-at without --lossless and --by-cpu");
  if (recording.kernel && (engine != EngineChoice::kPt || recording.lossless || recording.by_cpu))
    return misused("the kernel's code is recorded with Intel PT, thread by thread",
                   "--engine=pt without --lossless and --by-cpu");
  if ((!recording.resume_at.empty() || !recording.pause_at.empty()) && engine != EngineChoice::kPt)
    return misused("only Intel PT can be paused", "--engine=pt");
  if (recording.is_of_pt() && engine != EngineChoice::kPt)
    return misused("--pt and --filter are Intel PT's", "--engine=pt");
  if (!recording.filters.empty() && recording.by_cpu)
    return misused("address filters belong to a thread", "--filter without --by-cpu");
  if (recording.lossless && engine == EngineChoice::kLbr)
    return misused("last branch records are a short tail by nature", "--engine=pt or bts");
  return {};
}

Result<int> record_by_hardware(const ServeOptions& options, const HardwareRecording& recording,
                               std::FILE* err) {
  std::string keep = options.keep_folder;
  if (keep.empty()) {
    auto folder = free_recording_folder(options.program.front());
    if (!folder) return fail(std::move(folder.error()));
    keep = *folder;
    NewParents(keep).keep();
  }
  auto kept = KeptRecording::create(keep);
  if (!kept) return fail(std::move(kept.error()));
  auto program = FollowedProgram::start(options.program.front(), options.program);
  if (!program) return fail(std::move(program.error()));
  auto config = config_of(options, recording);
  if (!config) return fail(std::move(config.error()));
  HardwarePlaces places(recording, program->pid());
  if (auto ok = places.put_into(*config, watched(*program)); !ok)
    return fail(std::move(ok.error()));
  std::unique_ptr<Recorder> recorder = recorder_of(options, recording, *config, keep);
  auto begins = [&](ThreadId thread) -> Result<void> {
    if (auto ok = places.awaited().begins(thread); !ok) return ok;
    return recorder->begins(thread);
  };
  for (pid_t tid : program->threads())
    if (auto ok = begins({program->pid(), tid}); !ok) return fail(std::move(ok.error()));
  LeaveSignalsToProgram signals;
  std::optional<Error> trouble;
  auto note = [&](Result<void> done) {
    if (!done && !trouble) trouble = std::move(done.error());
  };
  FollowedProgram::Watcher watcher;
  watcher.begins = [&](ThreadId thread) { note(begins(thread)); };
  watcher.ends = [&](ThreadId thread, Address pc) {
    places.awaited().ends(thread);
    note(recorder->ends(thread, pc, *kept));
  };
  if (recording.any_breakpoints())
    watcher.executed = [&](ThreadId) { note(left_program(options.program.front())); };
  watcher.stopped = [&](ThreadId) {
    note(places.loads(*config));
    note(recorder->reconfigure(*config));
  };
  watcher.drops_stray_traps = recording.any_breakpoints();
  if (recorder->has_to_be_fast()) watcher.meanwhile = [&] { note(recorder->meanwhile()); };
  auto status = [&] {
    PassSignalsOn ends(program->pid());
    return program->follow(watcher);
  }();
  if (!status) return fail(std::move(status.error()));
  note(recorder->finish(*kept));
  auto finished = kept->finish();
  for (const auto& remarks :
       {recorder->take_remarks(), kept->remarks(), places.awaited().missing()})
    for (const Error& remark : remarks) fmt::print(err, "{}\n", remark.to_string());
  recorder->report(err);
  if (trouble && kept->is_empty()) return fail(std::move(*trouble));
  if (trouble) fmt::print(err, "{}\n", trouble->to_string());
  if (!finished) return fail(std::move(finished.error()));
  say_recorded(keep, err);
  return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

}  // namespace tailtrace
