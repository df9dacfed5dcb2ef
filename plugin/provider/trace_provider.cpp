#include "plugin/provider/trace_provider.h"

#include <fmt/format.h>

#include <algorithm>

#include "plugin/engines/tasks.h"

namespace tailtrace {
namespace {

using perf::Hardware;

}  // namespace

Result<std::optional<Hardware>> parse_hardware(std::string_view name) {
  if (name == "auto" || name.empty()) return std::optional<Hardware>();
  if (name == "pt") return std::optional(Hardware::kPt);
  if (name == "bts") return std::optional(Hardware::kBts);
  if (name == "lbr") return std::optional(Hardware::kLbr);
  return fail(ErrorCode::kUsage, fmt::format("there is no hardware named \"{}\"", name), "",
              "auto, pt, bts or lbr");
}

TraceProvider::TraceProvider(perf::Kernel& kernel, std::optional<Hardware> hardware,
                             perf::PerfConfig config)
    : kernel_(kernel), hardware_(hardware), config_(std::move(config)) {}

// Trying it on the very thread is the only way to know.
Result<void> TraceProvider::choose(ThreadId thread) {
  std::vector<Hardware> candidates = {Hardware::kPt, Hardware::kBts, Hardware::kLbr};
  if (hardware_) candidates = {*hardware_};
  std::vector<Error> refusals;
  for (Hardware hardware : candidates) {
    auto engine = std::make_unique<perf::PerfEngine>(kernel_, hardware, config_);
    auto started = engine->start(thread);
    if (started) {
      engine_ = std::move(engine);
      remarks_.insert(remarks_.end(), refusals.begin(), refusals.end());
      return {};
    }
    refusals.push_back(std::move(started.error()));
    if (refusals.back().code == ErrorCode::kGone) break;
  }
  if (refusals.size() == 1 || refusals.back().code == ErrorCode::kGone)
    return fail(std::move(refusals.back()));
  Error all{ErrorCode::kNoEngine,
            fmt::format("no hardware here can record thread {}", thread.tid),
            {},
            refusals.front().fix,
            refusals.front().now};
  for (const Error& refusal : refusals) {
    if (refusal.code == ErrorCode::kPermission) all.code = ErrorCode::kPermission;
    all.why += (all.why.empty() ? "" : "; ") + refusal.what + ": " + refusal.why;
  }
  return fail(std::move(all));
}

Result<void> TraceProvider::start(ThreadId thread) {
  auto started = engine_ ? engine_->start(thread) : choose(thread);
  if (started) threads_.insert(thread);
  return started;
}

Result<void> TraceProvider::start_process(std::int32_t pid) {
  std::vector<ThreadId> begun;
  std::vector<ThreadId> all = threads_of(kernel_.root(), pid);
  if (all.empty())
    return fail(ErrorCode::kGone, fmt::format("cannot record process {}", pid),
                "there is no such process");
  for (ThreadId thread : all) {
    if (threads_.contains(thread)) continue;
    auto started = start(thread);
    if (started) {
      begun.push_back(thread);
    } else if (started.error().code != ErrorCode::kGone) {
      for (ThreadId undo : begun) (void)stop(undo).has_value();
      return started;
    }
  }
  return {};
}

Result<void> TraceProvider::stop(ThreadId thread) {
  if (threads_.erase(thread) == 0)
    return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
  return engine_->stop(thread);
}

Result<void> TraceProvider::stop_process(std::int32_t pid) {
  bool any = false;
  for (ThreadId thread : threads()) {
    if (thread.pid != pid) continue;
    any = true;
    if (auto ok = stop(thread); !ok) return ok;
  }
  if (any) return {};
  return fail(ErrorCode::kGone, fmt::format("process {} is not recorded", pid));
}

Result<ThreadSnapshot> TraceProvider::snapshot(ThreadId thread, std::optional<Address> pc,
                                               std::uint64_t limit) {
  if (!threads_.contains(thread))
    return fail(ErrorCode::kGone, fmt::format("thread {} is not recorded", thread.tid));
  if (!pc) pc = perf::pc_of(kernel_.root(), thread);
  if (!pc)
    return fail(ErrorCode::kUsage, fmt::format("cannot take a snapshot of thread {}", thread.tid),
                "it runs, or it is gone, or it may not be looked at", "stop the thread first");
  return engine_->snapshot(thread, {*pc, false}, limit);
}

void TraceProvider::forget_ended(std::int32_t pid) {
  std::vector<ThreadId> left = threads_of(kernel_.root(), pid);
  for (ThreadId thread : threads())
    if (thread.pid == pid && std::ranges::find(left, thread) == left.end())
      (void)stop(thread).has_value();
}

Result<std::vector<ThreadSnapshot>> TraceProvider::snapshot_process(std::int32_t pid,
                                                                    std::uint64_t limit) {
  forget_ended(pid);
  std::vector<ThreadSnapshot> snapshots;
  for (ThreadId thread : threads_) {
    if (thread.pid != pid) continue;
    auto taken = snapshot(thread, std::nullopt, limit);
    if (!taken) return fail(std::move(taken.error()));
    snapshots.push_back(std::move(*taken));
  }
  if (!snapshots.empty()) return snapshots;
  return fail(ErrorCode::kGone, fmt::format("process {} is not recorded", pid));
}

std::vector<Error> TraceProvider::take_remarks() {
  std::vector<Error> remarks = std::exchange(remarks_, {});
  if (engine_)
    for (Error& remark : engine_->take_remarks()) remarks.push_back(std::move(remark));
  return remarks;
}

}  // namespace tailtrace
