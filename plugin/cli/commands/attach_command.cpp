#include <fmt/format.h>
#include <sys/wait.h>

#include <limits>

#include "plugin/cli/choice_option.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/record_until_crash.h"
#include "plugin/cli/recorder_options.h"
#include "plugin/cli/units.h"
#include "plugin/recorder/black_box.h"
#include "plugin/recorder/native_recorder.h"
#include "plugin/server/engine_of.h"

namespace tailtrace {
namespace {

struct AttachOptions {
  int pid = 0;
  std::string engine = "auto";
  std::string ring = "2MiB";
  RecorderOptions recorder;
};

EngineChoice engine_choice(const std::string& name) {
  if (name == "pt") return EngineChoice::kPt;
  if (name == "bts") return EngineChoice::kBts;
  if (name == "lbr") return EngineChoice::kLbr;
  if (name == "step") return EngineChoice::kStep;
  return best_hardware().value_or(EngineChoice::kStep);
}

std::string_view engine_text(EngineChoice engine) {
  if (engine == EngineChoice::kPt) return "Intel PT";
  if (engine == EngineChoice::kBts) return "Intel BTS";
  return engine == EngineChoice::kLbr ? "last branch records" : "single steps, which are slow";
}

std::string program_of(int pid) {
  const std::string command = command_of(pid);
  std::string program = command.substr(0, command.find(' '));
  return program.empty() ? fmt::format("pid{}", pid) : program;
}

Result<int> attach(const AttachOptions& options, const Invocation& invocation) {
  auto ring_records = parse_ring_records(options.ring);
  if (!ring_records) return fail(std::move(ring_records.error()));
  auto plan = flight_plan(options.recorder, program_of(options.pid), invocation.err);
  if (!plan) return fail(std::move(plan.error()));
  plan->ring_records = *ring_records;
  plan->ends_by_user = true;
  const EngineChoice engine = engine_choice(options.engine);
  auto keeper = keeper_of(engine, *ring_records);
  if (!keeper) return fail(std::move(keeper.error()));
  plan->begins = [&] {
    plan->say(
        fmt::format("recording process {} by {}; Ctrl-C ends it with a bundle, SIGUSR2 to "
                    "process {} takes a snapshot",
                    options.pid, engine_text(engine), ::getpid()));
  };
  auto end = record_running(options.pid, std::move(*keeper), *plan);
  if (!end) return fail(std::move(end.error()));
  say_end(*end, invocation.err);
  if (!end->bundle.empty()) return kExitDone;
  fmt::print(invocation.err, "process {} has ended without a crash; there is no bundle\n",
             options.pid);
  return kExitNegative;
}

}  // namespace

Command attach_command() {
  return {
      .name = "attach",
      .summary = "Record a running process until it crashes, or something else happens",
      .usage = "[OPTIONS] PID",
      .examples =
          {
              {"tailtrace attach --on-crash=DIR 4211", "DIR has its end, should it crash"},
              {"tailtrace attach --ring=64MiB --on-call=give_up 4211", "until it comes there"},
              {"tailtrace attach --on-signal=SIGUSR1 --core 4211", "with a core file"},
              {"tailtrace attach --on-crash=DIR 4211 & kill -USR2 $!",
               "a snapshot, DIR.1; it goes on"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<AttachOptions>();
        constexpr std::uint64_t kMostPid = std::numeric_limits<std::int32_t>::max();
        app.add_option("PID", options->pid, "the process")
            ->required()
            ->check(number_between(1, kMostPid));
        add_choice(app, "--engine", options->engine, "what records; auto: hardware, else steps",
                   {"auto", "pt", "bts", "lbr", "step"});
        app.add_option("--ring,--keep", options->ring,
                       "what is kept of each thread: records, or a size such as 64MiB (2MiB)")
            ->type_name("N");
        add_recorder_options(app, options->recorder);
        return [options](const Invocation& invocation) { return attach(*options, invocation); };
      },
      .take_program = {},
      .details =
          "The newest part of every thread is kept until the process crashes, a signal or function "
          "or place that was named comes, or somebody ends the recording (SIGINT, SIGTERM). Then "
          "one bundle is written: the histories of all threads, how they stood, what was mapped "
          "where, copies of the files that were executed, the time of day, and, on request, a core "
          "file; it can be read on another machine. Without --on-crash it goes to a new folder "
          "below XDG_STATE_HOME, as it does when its place turns out to be full. SIGUSR2 takes a "
          "snapshot and the recording goes on. The exit status is 1 when there was nothing to "
          "save. "
          "Nothing is written into the process, and it goes on when the recording has ended. While "
          "single steps record it, or debug registers wait, do not end tailtrace by SIGKILL: the "
          "process would be left with a trap that ends it.",
  };
}

}  // namespace tailtrace
