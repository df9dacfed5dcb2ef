#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "plugin/cli/awaited_places.h"
#include "plugin/cli/child_signals.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/hit_report.h"
#include "plugin/cli/write_output.h"
#include "plugin/engines/perf/marker_set.h"
#include "plugin/engines/qemu/program_check.h"
#include "plugin/provider/followed_program.h"
#include "plugin/recorder/watch_place.h"

namespace tailtrace {
namespace {

// A hit takes 56 bytes, with all registers about 200. Users may lock half a megabyte or so for each
// processor.
constexpr std::uint64_t kRing_bytes = 1u << 16;

struct WatchCommandOptions {
  std::vector<std::string> places;
  bool reads = false;
  HitReport::Form form;
  std::string file;
  std::shared_ptr<OutputOptions> output;
};

// The places of a program, some of which are of libraries that it has not loaded yet. Where it
// executes another one, they are those of that.
class Watching {
 public:
  Watching(const WatchCommandOptions& options, std::int32_t pid)
      : options_(options),
        registers_(options.form.registers ? all_registers() : 0),
        awaited_(pid),
        report_({}) {}

  Result<void> resolve(const WatchedProgram& program);
  Result<void> begins(ThreadId thread);
  Result<void> ends(ThreadId thread);
  // The program executes another one, where its places are looked for then.
  Result<void> executed(ThreadId thread, const WatchedProgram& program);
  // A thread stands where the dynamic linker tells what it has loaded.
  Result<void> loads();

  const HitReport& report() const { return report_; }
  // What has not come.
  std::vector<Error> missing() const { return awaited_.missing(); }

 private:
  Result<void> resolve(const std::string& place, const WatchedProgram& program);
  Result<void> watch(perf::BreakpointSpec spec);

  const WatchCommandOptions& options_;
  std::uint64_t registers_;
  AwaitedPlaces awaited_;
  std::vector<perf::BreakpointSpec> specs_;     // of the program that it executes now
  std::map<std::string, std::size_t> numbers_;  // in the report, of all
  std::map<ThreadId, perf::MarkerSet> threads_;
  HitReport report_;
};

Result<void> Watching::resolve(const WatchedProgram& program) {
  for (const std::string& place : options_.places)
    if (auto ok = resolve(place, program); !ok) return ok;
  report_.maps_changed(program.pid);
  return {};
}

Result<void> Watching::resolve(const std::string& place, const WatchedProgram& program) {
  auto awaits = awaited_.awaits(place, program);
  if (!awaits) return fail(std::move(awaits.error()));
  if (*awaits) return {};
  auto spec = resolve_watch(place, program, options_.reads);
  if (!spec) return fail(std::move(spec.error()));
  return watch(std::move(*spec));
}

// One that is named twice is one.
Result<void> Watching::watch(perf::BreakpointSpec spec) {
  auto is_it = [&](const perf::BreakpointSpec& one) { return one.name == spec.name; };
  if (std::ranges::any_of(specs_, is_it)) return {};
  spec.registers = registers_;
  for (auto& [thread, its] : threads_)
    if (auto ok = its.add(spec); !ok) return ok;
  if (numbers_.try_emplace(spec.name, report_.watches()).second) report_.watch(spec);
  specs_.push_back(std::move(spec));
  return {};
}

Result<void> Watching::begins(ThreadId thread) {
  perf::MarkerSet its(perf::real_kernel(), thread.tid, kRing_bytes);
  for (const perf::BreakpointSpec& spec : specs_)
    if (auto ok = its.add(spec); !ok) return ok;
  if (auto ok = awaited_.begins(thread); !ok) return ok;
  threads_.insert_or_assign(thread, std::move(its));
  return {};
}

Result<void> Watching::ends(ThreadId thread) {
  awaited_.ends(thread);
  auto its = threads_.find(thread);
  if (its == threads_.end()) return {};
  auto logs = its->second.read_all(~0ull);
  if (!logs) return fail(std::move(logs.error()));
  std::map<std::size_t, perf::MarkerLog> numbered;
  for (auto& [number, log] : *logs)
    numbered.emplace(numbers_.at(specs_[number].name), std::move(log));
  report_.add(thread, numbered);
  threads_.erase(its);
  return {};
}

// A thread that is not the first one has the number of the first one from then on.
Result<void> Watching::executed(ThreadId thread, const WatchedProgram& program) {
  Result<void> done;
  auto note = [&](Result<void> ok) {
    if (!ok && done) done = std::move(ok);
  };
  while (!threads_.empty()) note(ends(threads_.begin()->first));
  specs_.clear();
  awaited_ = AwaitedPlaces(program.pid);
  for (const std::string& place : options_.places) note(resolve(place, program));
  note(begins(thread));
  return done;
}

Result<void> Watching::loads() {
  auto come = awaited_.come();
  if (!come) return fail(std::move(come.error()));
  if (!come->empty()) report_.maps_changed(awaited_.loaded().pid);
  Result<void> done;
  for (const std::string& place : *come) {
    auto spec = resolve_watch(place, awaited_.loaded(), options_.reads);
    Result<void> watched = spec ? watch(std::move(*spec)) : Result<void>(fail(spec.error()));
    if (!watched && done) done = std::move(watched);
  }
  return done;
}

Result<int> follow(FollowedProgram& program, Watching& watching, std::FILE* err) {
  std::optional<Error> trouble;
  auto note = [&](Result<void> done) {
    if (!done && !trouble) trouble = std::move(done.error());
  };
  FollowedProgram::Watcher watcher;
  watcher.begins = [&](ThreadId thread) { note(watching.begins(thread)); };
  watcher.ends = [&](ThreadId thread, Address) { note(watching.ends(thread)); };
  watcher.drops_stray_traps = true;
  watcher.executed = [&](ThreadId thread) { note(watching.executed(thread, watched(program))); };
  watcher.stopped = [&](ThreadId) { note(watching.loads()); };
  PassSignalsOn ends(program.pid());
  auto status = program.follow(watcher);
  if (trouble) fmt::print(err, "{}\n", trouble->to_string());
  for (const Error& error : watching.missing()) fmt::print(err, "{}\n", error.to_string());
  return status;
}

void print(const HitReport& report, const WatchCommandOptions& options, std::FILE* out) {
  if (options.output->json == JsonForm::kNone)
    report.print(out, options.form);
  else
    report.print_json(out, options.form, options.output->json);
}

// `status` is the program's.
Result<void> watch(const WatchCommandOptions& options, const Invocation& invocation, std::FILE* out,
                   int& status) {
  std::vector<std::string> words = invocation.program;
  if (words.empty())
    return fail(ErrorCode::kUsage, "cannot run a program", "there is none behind `--`",
                "tailtrace watch PLACE -- PROGRAM [ARG...]");
  if (auto runnable = find_program(words); !runnable) return fail(std::move(runnable.error()));
  if (auto ok = check_watches(options.places); !ok) return ok;
  auto path = find_in_path(words.front());
  if (!path) return fail(std::move(path.error()));
  words.front() = *path;
  auto program = FollowedProgram::start(*path, words);
  if (!program) return fail(std::move(program.error()));
  Watching watching(options, program->pid());
  if (auto ok = watching.resolve(watched(*program)); !ok) return ok;
  for (pid_t tid : program->threads())
    if (auto ok = watching.begins({program->pid(), tid}); !ok) return ok;
  LeaveSignalsToProgram signals;
  auto ended = follow(*program, watching, invocation.err);
  if (!ended) return fail(std::move(ended.error()));
  print(watching.report(), options, out);
  status = WIFSIGNALED(*ended) ? 128 + WTERMSIG(*ended) : WEXITSTATUS(*ended);
  return {};
}

// A file is begun before the program is.
Result<int> run_watch(const WatchCommandOptions& options, const Invocation& invocation) {
  int status = kExitDone;
  auto write = [&](std::FILE* out) { return watch(options, invocation, out, status); };
  Result<void> written = options.file.empty()
                             ? write(invocation.err)
                             : write_output(options.file, OlderFile::kIsReplaced, write);
  if (!written) return fail(std::move(written.error()));
  return status;
}

}  // namespace

Command watch_command() {
  return {
      .name = "watch",
      .summary = "Tell who touches a variable, or comes to a place, without stopping the program",
      .usage = "[OPTIONS] PLACE... -- PROGRAM [ARG...]",
      .examples =
          {
              {"tailtrace watch counter -- ./program", "every write of a variable"},
              {"tailtrace watch --registers Queue::pop -- ./program", "calls, with all registers"},
              {"tailtrace watch --reads table+16:8 -- ./program", "eight bytes, reads as well"},
              {"tailtrace watch --json --output=hits.json '*0x404028:4' -- ./program",
               "for a script"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<WatchCommandOptions>();
        app.add_option("PLACE", options->places,
                       "VARIABLE, FUNCTION, FILE:LINE, MODULE`NAME, MODULE+OFFSET, *ADDRESS; "
                       "NAME+OFFSET:SIZE for a part; four at most")
            ->required();
        app.add_flag("--reads", options->reads, "reads of variables, not writes only");
        app.add_flag("--registers", options->form.registers, "with all general registers");
        add_count(app, "--limit", options->form.limit, "show the newest N");
        app.add_option("--output", options->file, "write into a file, not on standard error")
            ->type_name("FILE");
        options->output = add_output_options(app);
        return [options](const Invocation& invocation) { return run_watch(*options, invocation); };
      },
      .take_program = take_behind_dashes,
      .details =
          "The processor's debug registers do it, four for each thread, on any machine where perf "
          "events are permitted; no tracing hardware is needed, and the program does not stop. "
          "Hits are counted exactly; the newest of each thread and place are kept, a thousand or "
          "so, "
          "three hundred with registers. Processes that the program makes are not watched; a "
          "program that it executes in its place is, as wrappers do (PROGRAM`NAME). "
          "An access is told with the address behind its instruction, and with the line of that. "
          "A name may lack scopes and parameters, as in `tailtrace hits`. Where it is not one of "
          "the "
          "program's own file, those of the libraries that it starts with are looked through "
          "(MODULE`NAME: of one of them), and it is watched from its own first instruction, behind "
          "the dynamic linker. MODULE`NAME may also be of a library that the program loads later "
          "(dlopen): it is watched from before its first instruction. Of a function that is chosen "
          "as the program starts, as memcpy is, it is the chosen one. The exit status is the "
          "program's. To have hits in a history, see "
          "`--watch` of `tailtrace run`.",
  };
}

}  // namespace tailtrace
