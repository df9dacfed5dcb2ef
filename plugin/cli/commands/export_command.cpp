#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "decoder/export/html_page.h"
#include "plugin/cli/choice_option.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/exporters.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/question.h"
#include "plugin/cli/write_output.h"

namespace tailtrace {
namespace {

struct ExportCommandOptions {
  QuestionOptions question;
  std::string format;
  std::string file;  // of the program, that is exported
  std::string output;
};

Result<void> export_thread(const ExportCommandOptions& options, HistoryView& view, bool several,
                           Exporter& exporter) {
  if (several && holds_one_thread(options.format))
    return fail(ErrorCode::kUsage,
                fmt::format("cannot write several threads as {}", options.format), "it holds one",
                "--thread=" + thread_text(view.thread));
  Result<Range> range = asked_range(options.question, *view.history);
  if (!range) return fail(std::move(range.error()));
  if (options.format == "html" && options.question.shared.range.empty())
    range->first += range->size() - std::min(range->size(), kPageItems);
  Result<void> added;
  if (range->size() != 0) added = exporter.add(view, *range);
  if (view.history->is_abandoned() || LongWork::interrupted())
    return fail(ErrorCode::kNegative, "the export was interrupted", "a part of it would be missing",
                "--range=-N,-1 writes the newest N items only");
  return added;
}

// `gaps`: how many the histories have.
Result<void> export_into(std::FILE* file, const ExportCommandOptions& options, std::FILE* err,
                         std::uint64_t& gaps) {
  if (!is_text_format(options.format) && ::isatty(::fileno(file)) == 1)
    return fail(ErrorCode::kUsage, fmt::format("cannot write {} to a terminal", options.format),
                "it is no text", "-o FILE");
  auto put_line = [file](std::string_view line) {
    wipe_progress();
    fmt::print(file, "{}\n", line);
    return !LongWork::interrupted();
  };
  auto put_bytes = [file](std::string_view bytes) {
    put_text(file, bytes);
    return !LongWork::interrupted();
  };
  std::unique_ptr<Exporter> exporter = make_exporter(
      {options.format, options.question.shared.path, options.file}, put_line, put_bytes);
  exporter->begin();
  auto add = [&](HistoryView& view, bool several) {
    return export_thread(options, view, several, *exporter);
  };
  Result<std::uint64_t> found = each_thread(options.question, err, add);
  if (!found) return fail(std::move(found.error()));
  gaps = *found;
  if (Result<void> ended = exporter->end(); !ended) return ended;
  for (const Error& problem : exporter->problems()) fmt::print(err, "{}\n", problem.to_string());
  return {};
}

Result<int> run_export(const ExportCommandOptions& options, const Invocation& invocation) {
  std::uint64_t gaps = 0;
  auto write = [&](std::FILE* file) { return export_into(file, options, invocation.err, gaps); };
  Result<void> written = options.output.empty()
                             ? write(invocation.out)
                             : write_output(options.output, OlderFile::kStays, write);
  if (!written) return fail(std::move(written.error()));
  return question_status(true, gaps, options.question);
}

}  // namespace

Command export_command() {
  return {
      .name = "export",
      .summary = "Write a recording for other programs: flame graphs, timelines, profiles",
      .usage = "--format=FORMAT [OPTIONS] PATH",
      .examples =
          {
              {"tailtrace export --format=folded SESSION | flamegraph.pl", "a flame graph"},
              {"tailtrace export --format=chrome -o calls.json SESSION",
               "a timeline, for Perfetto's viewer or chrome://tracing"},
              {"tailtrace export --format=perfetto -o calls.pftrace SESSION",
               "the same in Perfetto's own form, smaller"},
              {"tailtrace export --format=html -o calls.html SESSION",
               "a timeline to zoom and search, in one page for any browser"},
              {"tailtrace export --format=perf-data -o perf.data SESSION",
               "for `perf script --itrace=i1i` and what else reads Intel PT of perf's"},
              {"tailtrace export --format=drcov -o run.drcov SESSION",
               "executed blocks, for coverage painters of disassemblers"},
              {"tailtrace export --format=bolt SESSION > profile",
               "for `perf2bolt -pa -p profile -o fdata PROGRAM`"},
              {"tailtrace export --format=autofdo SESSION > profile",
               "for `create_gcov --profiler=text` and its like"},
              {"tailtrace export --format=arrow -o records.arrow SESSION",
               "for pandas, polars, DuckDB, R and what else reads Arrow"},
              {"tailtrace export --format=npy -o records.npy SESSION", "for numpy.load"},
              {"tailtrace export --format=btrace -o btrace.xml SESSION",
               "as GDB's remote protocol has it"},
              {"tailtrace export --format=chrome --range=-100000,-1 SESSION", "of the newest part"},
          },
      .elsewhere = {"convert", "flamegraph"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<ExportCommandOptions>();
        HistoryOptions& shared = options->question.shared;
        shared.output = std::make_shared<OutputOptions>();
        add_path(app, shared.path);
        add_choice(app, "--format", options->format, "what to write", export_formats())->required();
        app.add_option("--file", options->file,
                       "of which file of the program bolt and autofdo profiles are; the first "
                       "executed one")
            ->type_name("NAME");
        app.add_option("-o,--output", options->output,
                       "a new file; the standard output if not given")
            ->type_name("FILE");
        app.add_option("--thread", shared.thread, "this one only; all if nothing is said")
            ->type_name(kThreadWord);
        app.add_option("--range", shared.range, std::string("of these items only: ") + kRangeHelp)
            ->type_name("RANGE");
        add_reading_options(app, shared);
        app.add_flag("--strict", shared.strict, "exit with status 6 when there are gaps");
        return [options](const Invocation& invocation) { return run_export(*options, invocation); };
      },
      .take_program = {},
      .details =
          "folded: a line for each stack of calls, with the instructions that were executed in it. "
          "chrome: the calls of each thread as slices of a timeline whose clock is the count of "
          "executed instructions, one for a microsecond. perfetto: the same as a stream of track "
          "events. html: a page that needs no network, with the calls and loops of the newest "
          "1000000 instructions of each thread, unless --range says otherwise, and 200000 calls at "
          "most. These hold 500 levels of calls at most. "
          "perf-data: what was executed as Intel PT in a file of perf's; perf reads the code from "
          "the files that the program had mapped, so what ran elsewhere is a break there. "
          "btrace: a whole thread (--thread), as debug servers answer GDB's qXfer:btrace:read. "
          "`tailtrace coverage --lcov` and `tailtrace history --json` are exports as well.",
  };
}

}  // namespace tailtrace
