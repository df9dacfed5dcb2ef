#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/module_symbols.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/debug_session.h"
#include "plugin/cli/gdb_start.h"
#include "plugin/cli/lldb_start.h"
#include "plugin/cli/record_by_hardware.h"
#include "plugin/cli/record_only.h"
#include "plugin/cli/record_until_crash.h"
#include "plugin/cli/serve_options.h"
#include "plugin/engines/qemu/program_check.h"
#include "plugin/engines/qemu/qemu_process.h"
#include "plugin/provider/child_process.h"
#include "plugin/provider/lldb_program.h"
#include "plugin/server/engine_of.h"
#include "plugin/server/monitor/sizes.h"

namespace tailtrace {
namespace {

struct RunOptions {
  RecordingOptions recording;
  bool gdb = false;  // the default
  bool lldb = false;
  bool no_debugger = false;
  HardwareRecording hardware;
  RecorderOptions recorder;
};

Result<std::string> find_gdb() {
  std::string path = path_of_program("gdb");
  if (!path.empty()) return path;
  return fail(ErrorCode::kNoEngine, "cannot start GDB", "there is no gdb in PATH",
              "sudo apt-get install gdb");
}

Result<std::string> write_script(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) return fail(system_error("cannot write " + path));
  return path;
}

// Programs without symbols are common; GDB would complain of the breakpoint.
bool names_main(const std::string& program) {
  auto module = ModuleSymbols::open(program);
  if (!module) return true;
  auto has_main = [](const ElfFile& file) {
    return std::ranges::any_of(file.symbols(),
                               [](const ElfSymbol& symbol) { return symbol.name == "main"; });
  };
  const ElfFile* debug = (*module)->debug_file();
  return has_main((*module)->file()) || (debug != nullptr && has_main(*debug));
}

// Has the program named by its path, so that all find the same one, and returns the file with its
// code: a script's is its interpreter's.
Result<std::string> resolve_program(std::vector<std::string>& program) {
  auto runnable = find_program(program);
  if (!runnable) return fail(std::move(runnable.error()));
  auto path = find_in_path(program.front());
  if (!path) return fail(std::move(path.error()));
  program.front() = *path;
  return runnable->path;
}

// What `auto` is for a program that is started: hardware, else qemu where it is, else steps.
EngineChoice resolve_engine(const ServeOptions& serve) {
  if (serve.engine != EngineChoice::kAuto) return serve.engine;
  if (auto hardware = best_hardware()) return *hardware;
  return find_qemu(serve.qemu) && find_qemu_plugin() ? EngineChoice::kQemu : EngineChoice::kStep;
}

Result<int> run_under_gdb(ServeOptions serve, const std::vector<std::string>& gdb_options) {
  auto gdb = find_gdb();
  if (!gdb) return fail(std::move(gdb.error()));
  GdbStart start;
  start.gdb = *gdb;
  auto program = resolve_program(serve.program);
  if (!program) return fail(std::move(program.error()));
  start.program = *program;
  start.options = gdb_options;
  serve.engine = resolve_engine(serve);
  start.record_from_start = serve.engine != EngineChoice::kStep;
  auto command_line = [&](const std::string& target,
                          const std::string& folder) -> Result<std::vector<std::string>> {
    start.target = target;
    if (names_main(start.program)) {
      auto script = write_script(folder + "/to-main.gdb", to_main_script());
      if (!script) return fail(std::move(script.error()));
      start.to_main = *script;
    }
    return gdb_command_line(start);
  };
  return run_debug_session(std::move(serve), command_line);
}

bool is_hardware(EngineChoice engine) {
  return engine == EngineChoice::kPt || engine == EngineChoice::kBts ||
         engine == EngineChoice::kLbr;
}

Result<int> run_under_lldb(ServeOptions serve, const Invocation& invocation) {
  const char* search_path = std::getenv("PATH");
  auto lldb = find_lldb(search_path == nullptr ? "/usr/bin:/bin" : search_path);
  if (!lldb) return fail(std::move(lldb.error()));
  LldbStart start;
  start.lldb = lldb->path;
  auto program = resolve_program(serve.program);
  if (!program) return fail(std::move(program.error()));
  start.program = *program;
  start.options = invocation.extras;
  serve.engine = resolve_engine(serve);
  serve.detach_kills = true;
  start.local_process = serve.engine != EngineChoice::kQemu;
  start.record_from_start = serve.engine != EngineChoice::kStep;
  start.has_main = names_main(start.program);
  if (!start.has_main)
    fmt::print(invocation.err,
               "The program has no symbol `main`: LLDB stops at its first instruction.\n");
  fmt::print(invocation.err, "{}\n",
             sizes_in_words(serve, !is_hardware(serve.engine), Reader::kLldb));
  return run_debug_session(std::move(serve),
                           [&](const std::string& socket,
                               const std::string& folder) -> Result<std::vector<std::string>> {
                             start.socket = socket;
                             auto script =
                                 write_script(folder + "/one_terminal.py", lldb_terminal_script());
                             if (!script) return fail(std::move(script.error()));
                             start.terminal_script = *script;
                             return lldb_command_line(start);
                           });
}

Result<int> run_without_debugger(ServeOptions serve, const HardwareRecording& wanted,
                                 std::FILE* err) {
  if (wanted.any() && serve.engine == EngineChoice::kAuto)
    serve.engine = best_hardware().value_or(EngineChoice::kPt);
  if (wanted.any() && !is_hardware(serve.engine))
    return fail(
        ErrorCode::kUsage, "cannot record so",
        "--by-cpu, --children, --lossless, --kernel, --watch, --resume-at, --pause-at, --pt and "
        "--filter are the hardware engines'",
        "--engine=pt", wanted.watches.empty() ? "" : "tailtrace watch PLACE -- PROGRAM");
  if (!is_hardware(serve.engine)) return record_to_end(serve, err);
  if (auto ok = check(wanted, serve.engine); !ok) return fail(std::move(ok.error()));
  if (auto found = resolve_program(serve.program); !found) return fail(std::move(found.error()));
  return record_by_hardware(serve, wanted, err);
}

// qemu has no debug registers.
Result<int> run_until_crash(ServeOptions serve, const RunOptions& options, std::FILE* err) {
  const HardwareRecording& other = options.hardware;
  if (options.lldb || options.gdb || other.any())
    return fail(ErrorCode::kUsage, "cannot record so until a crash",
                "--on-crash is a way of its own, without a debugger and by thread",
                "--on-call, --on-write and --on-access for places; or without --on-crash");
  if (!serve.keep_folder.empty())
    return fail(ErrorCode::kUsage, "cannot keep the recording in two places", "",
                "--on-crash=BUNDLE alone");
  const RecorderOptions& wanted = options.recorder;
  const bool needs_registers =
      !wanted.functions.empty() || !wanted.writes.empty() || !wanted.accesses.empty();
  if (serve.engine == EngineChoice::kAuto && needs_registers)
    serve.engine = best_hardware().value_or(EngineChoice::kStep);
  serve.engine = resolve_engine(serve);
  if (auto found = resolve_program(serve.program); !found) return fail(std::move(found.error()));
  return record_until_crash(serve, wanted, err);
}

// The debugger's options stand before `--`; without `--` there are none.
Result<int> run(const RunOptions& options, const Invocation& invocation) {
  if (invocation.program.empty())
    return fail(ErrorCode::kUsage, "cannot run a program", "there is none behind `--`",
                "tailtrace run -- PROGRAM [ARG...]");
  ServeOptions serve;
  serve.program = invocation.program;
  if (auto ok = apply(options.recording, serve); !ok) return fail(std::move(ok.error()));
  const HardwareRecording& wanted = options.hardware;
  if (options.recorder.bundle.empty() && options.recorder.any())
    return fail(ErrorCode::kUsage, "cannot wait for anything under a debugger",
                "what ends a recording is for one without it", "--on-crash=BUNDLE");
  if (!options.recorder.bundle.empty() && invocation.extras.empty())
    return run_until_crash(std::move(serve), options, invocation.err);
  if (!options.no_debugger && wanted.any())
    return fail(ErrorCode::kUsage, "cannot record so under a debugger",
                "a debugger asks for the history of each thread", "--no-debugger");
  if (options.lldb) return run_under_lldb(std::move(serve), invocation);
  if (!options.no_debugger && options.recorder.bundle.empty())
    return run_under_gdb(std::move(serve), invocation.extras);
  if (!invocation.extras.empty())
    return fail(ErrorCode::kUsage, "cannot use " + invocation.extras.front(),
                "it would be a debugger's, and there is none", "tailtrace help run");
  return run_without_debugger(std::move(serve), wanted, invocation.err);
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .summary = "Run a program and record it, under GDB, LLDB or by itself",
      .usage = "[OPTIONS] [DEBUGGER'S OPTIONS] -- PROGRAM [ARG...]",
      .examples =
          {
              {"tailtrace run -- ./program --its-option", "GDB, recording, stopped at main"},
              {"tailtrace run -ex 'break abort' -ex continue -- ./program", "GDB's own options"},
              {"tailtrace run --lldb -- ./program", "LLDB instead"},
              {"tailtrace run --no-debugger --keep=DIR -- ./program", "only record it"},
              {"tailtrace run --no-debugger --lossless -- ./program",
               "all of it, by the processor"},
              {"tailtrace run --on-crash=DIR -- ./server", "always on; DIR has the end of a crash"},
          },
      .elsewhere = {"record", "start", "exec", "gdb", "lldb"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<RunOptions>();
        app.allow_extras();
        auto* gdb = app.add_flag("--gdb", options->gdb, "under GDB (default)");
        auto* lldb = app.add_flag("--lldb", options->lldb, "under LLDB");
        auto* none = app.add_flag("--no-debugger", options->no_debugger,
                                  "only record, to the end, and keep it (--keep=DIR)");
        lldb->excludes(gdb, none);
        app.add_flag("--lossless", options->hardware.lossless,
                     "all, not the newest part (--no-debugger; pt, bts)");
        app.add_flag("--by-cpu", options->hardware.by_cpu,
                     "a buffer for each CPU, not thread (--no-debugger)");
        app.add_flag("--children", options->hardware.children,
                     "processes that it makes, too (--by-cpu)");
        app.add_flag("--kernel", options->hardware.kernel,
                     "the kernel's code, too (--no-debugger; pt)");
        app.add_option("--watch", options->hardware.watches,
                       "hits of a debug register as well (--no-debugger)")
            ->type_name("PLACE");
        app.add_flag("--reads", options->hardware.reads, "reads of variables, too (--watch)");
        app.add_option("--resume-at", options->hardware.resume_at,
                       "record from there on (--no-debugger; pt)")
            ->type_name("PLACE");
        app.add_option("--pause-at", options->hardware.pause_at, "record until there (the same)")
            ->type_name("PLACE");
        app.add_option("--filter", options->hardware.filters,
                       "only that function; NAME:SIZE (--no-debugger; pt)")
            ->type_name("PLACE");
        app.add_option("--pt", options->hardware.pt_settings,
                       "cyc, mtc_period=N, ... (--no-debugger; pt)")
            ->type_name("SETTINGS");
        add_recorder_options(app, options->recorder);
        add_recording_options(app, options->recording);
        return [options](const Invocation& invocation) { return run(*options, invocation); };
      },
      .take_program = take_behind_dashes,
      .details =
          "The debugger is started connected to the program, recording from its first "
          "instruction, and stopped at main; its own options and their commands come after that. "
          "The program has the terminal while it runs, as under the debugger alone. In LLDB, "
          "`thread trace dump instructions` and `thread trace dump function-calls` show the "
          "history. With --on-crash there is no debugger: `attach` says what becomes of the "
          "recording, and of SIGUSR2. SIGTERM and SIGHUP are passed on to the program, or to the "
          "debugger. "
          "A PLACE is one of `tailtrace watch`; `tailtrace find --kind=marker` shows what "
          "was executed at its hits. Where it is a library's, the recording begins behind the "
          "dynamic linker; while it is one's that the program loads later (MODULE`NAME), a debug "
          "register waits for that. With --resume-at and --pause-at the trace runs only between "
          "them, however often; Linux 6.13 can do that. SETTINGS are those of Intel PT as sysfs "
          "names them, separated by commas: tsc, cyc, cyc_thresh, mtc, mtc_period, psb_period, "
          "ptw, event, noretcomp; what has no value is switched on.",
  };
}

}  // namespace tailtrace
