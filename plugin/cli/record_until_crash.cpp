#include "plugin/cli/record_until_crash.h"

#include <sys/wait.h>

#include <filesystem>

#include "plugin/cli/child_signals.h"
#include "plugin/recorder/native_recorder.h"
#include "plugin/recorder/qemu_recorder.h"

namespace tailtrace {
namespace {

Result<FlightEnd> record_under_qemu(const ServeOptions& serve, const FlightPlan& plan) {
  QemuOptions qemu;
  qemu.program = serve.program;
  qemu.ring_records = serve.ring_records;
  qemu.qemu = serve.qemu;
  qemu.kept_session = plan.bundle + ".session";
  std::error_code ignored;
  if (std::filesystem::exists(qemu.kept_session, ignored))
    return fail(ErrorCode::kUsage, "cannot record where a recording was left behind",
                qemu.kept_session + " is there: tailtrace was killed, or had no room for a bundle",
                "tailtrace history " + qemu.kept_session + " shows it; then remove it");
  auto end = record_in_qemu(qemu, plan);
  if (end) {
    std::filesystem::remove_all(qemu.kept_session, ignored);
  } else if (std::filesystem::exists(qemu.kept_session, ignored)) {
    plan.say("the recording is left in " + qemu.kept_session);
  }
  return end;
}

Result<FlightEnd> record_natively(const ServeOptions& serve, const FlightPlan& plan) {
  auto keeper = keeper_of(serve.engine, serve.ring_records);
  if (!keeper) return fail(std::move(keeper.error()));
  auto program = FollowedProgram::start(serve.program.front(), serve.program);
  if (!program) return fail(std::move(program.error()));
  return record_started(std::move(*program), std::move(*keeper), plan);
}

}  // namespace

Result<std::unique_ptr<BranchKeeper>> keeper_of(EngineChoice engine, std::uint64_t ring_records) {
  const std::uint64_t buffer_bytes = ring_records * sizeof(BranchRecord);
  switch (engine) {
    case EngineChoice::kPt:
      return keep_by_hardware(perf::Hardware::kPt, buffer_bytes);
    case EngineChoice::kBts:
      return keep_by_hardware(perf::Hardware::kBts, buffer_bytes);
    case EngineChoice::kLbr:
      return keep_by_hardware(perf::Hardware::kLbr, buffer_bytes);
    default:
      return keep_by_steps(ring_records);
  }
}

Result<int> record_until_crash(const ServeOptions& serve, const RecorderOptions& options,
                               std::FILE* err) {
  auto plan = flight_plan(options, serve.program.front(), err);
  if (!plan) return fail(std::move(plan.error()));
  plan->ring_records = serve.ring_records;
  LeaveSignalsToProgram signals;
  auto end = serve.engine == EngineChoice::kQemu ? record_under_qemu(serve, *plan)
                                                 : record_natively(serve, *plan);
  if (!end) return fail(std::move(end.error()));
  say_end(*end, err);
  const int status = end->status.value_or(0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace tailtrace
