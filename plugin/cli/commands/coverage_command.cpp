#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "decoder/base/text.h"
#include "decoder/export/lcov.h"
#include "decoder/history/location.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/question.h"
#include "plugin/cli/source_texts.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct CoverageCommandOptions {
  QuestionOptions question;
  std::string file;
  bool lcov = false;
  bool lines = false;
};

void print_line(const LineCoverage& line, unsigned number, const std::string& text,
                const Invocation& invocation) {
  std::string times = line.times == 0 ? "-" : std::to_string(line.times);
  fmt::print(invocation.out, "    {:>10}  {:>5}  {}\n", times, number, text);
}

// Each line that has code, beside its text where the file can be read.
void print_lines_of(const std::string& path, const FileCoverage& file, Printing& printing,
                    const Invocation& invocation) {
  SourceTexts sources;
  const std::vector<std::string>& texts = sources.lines(path);
  for (const auto& [number, line] : file.lines) {
    if (!printing.goes_on()) return;
    print_line(line, number, number <= texts.size() ? texts[number - 1] : "", invocation);
  }
}

void print_text(const Coverage& coverage, const CoverageCommandOptions& options,
                const Invocation& invocation) {
  Printing printing(invocation.out);
  for (const auto& [path, file] : coverage.files()) {
    if (!options.file.empty() && !ends_path(path, options.file)) continue;
    if (!printing.goes_on()) return;
    double share =
        100.0 * static_cast<double>(file.lines_executed()) / static_cast<double>(file.lines.size());
    fmt::print(invocation.out, "  {:>5.1f} %  {:>5} of {:<5} lines  {}\n", share,
               file.lines_executed(), file.lines.size(), printable(path));
    if (options.lines) print_lines_of(path, file, printing, invocation);
  }
  if (!printing.goes_on()) return;
  fmt::print(invocation.out, "  {} instructions, {} of them without a source line\n",
             coverage.instructions(), coverage.without_line());
}

OrderedJson file_json(const std::string& path, const FileCoverage& file) {
  OrderedJson lines = OrderedJson::array();
  for (const auto& [number, line] : file.lines) {
    OrderedJson one = {{"line", number}, {"times", line.times}};
    for (const auto& [address, branch] : line.branches)
      one["branches"].push_back({{"address", json_address({address})},
                                 {"taken", branch.taken},
                                 {"not_taken", branch.not_taken}});
    lines.push_back(std::move(one));
  }
  return {{"file", path},
          {"lines_executed", file.lines_executed()},
          {"lines_with_code", file.lines.size()},
          {"lines", std::move(lines)}};
}

void print_objects(const Coverage& coverage, const CoverageCommandOptions& options,
                   const Invocation& invocation) {
  JsonForm form = options.question.shared.output->json;
  OrderedJson document = {{"path", options.question.shared.path},
                          {"instructions", coverage.instructions()},
                          {"without_line", coverage.without_line()}};
  if (form == JsonForm::kLines) print_json(invocation.out, "tailtrace.coverage/1", document, form);
  OrderedJson files = OrderedJson::array();
  Printing printing(invocation.out);
  for (const auto& [path, file] : coverage.files()) {
    if (!options.file.empty() && !ends_path(path, options.file)) continue;
    if (!printing.goes_on()) break;
    if (form == JsonForm::kLines)
      fmt::print(invocation.out, "{}\n", json_text(file_json(path, file)));
    else
      files.push_back(file_json(path, file));
  }
  if (form == JsonForm::kLines) return;
  document["files"] = std::move(files);
  if (printing.interrupted()) document["interrupted"] = true;
  print_json(invocation.out, "tailtrace.coverage/1", document, form);
}

// genhtml gives up where it cannot read a source file, such as one of the C library's. Nor does it
// take the record of a file that does not end.
void print_lcov(const Coverage& coverage, const CoverageCommandOptions& options,
                const Invocation& invocation) {
  Printing printing(invocation.out);
  auto wanted = [&](const std::string& path) {
    if (!printing.goes_on()) return false;
    if (!options.file.empty()) return ends_path(path, options.file);
    return ::access(path.c_str(), R_OK) == 0;
  };
  list_lcov(coverage, wanted, [&](std::string_view line) {
    fmt::print(invocation.out, "{}\n", line);
    return std::ferror(invocation.out) == 0;
  });
}

Result<int> show_coverage(const CoverageCommandOptions& options, const Invocation& invocation) {
  Coverage coverage;
  Result<std::uint64_t> gaps =
      each_thread(options.question, invocation.err, [&](HistoryView& view, bool) -> Result<void> {
        Result<Range> range = asked_range(options.question, *view.history);
        if (!range) return fail(std::move(range.error()));
        coverage.add(*view.history, *view.symbols, *range);
        return {};
      });
  if (!gaps) return fail(std::move(gaps.error()));
  if (options.lcov)
    print_lcov(coverage, options, invocation);
  else if (options.question.shared.output->json != JsonForm::kNone)
    print_objects(coverage, options, invocation);
  else
    print_text(coverage, options, invocation);
  const bool any =
      options.file.empty() || std::ranges::any_of(coverage.files(), [&](const auto& file) {
        return ends_path(file.first, options.file);
      });
  if (!any) fmt::print(invocation.err, "nothing of {} was executed\n", printable(options.file));
  return question_status(any, *gaps, options.question);
}

}  // namespace

Command coverage_command() {
  return {
      .name = "coverage",
      .summary = "Show which source lines were executed, and how often",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace coverage SESSION", "how much of each source file"},
              {"tailtrace coverage --lines --file=parse.c SESSION", "a file, line by line"},
              {"tailtrace coverage --lcov SESSION > coverage.info", "for genhtml and editors"},
          },
      .elsewhere = {"annotate", "gcov", "lcov"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<CoverageCommandOptions>();
        QuestionOptions& question = options->question;
        add_path(app, question.shared.path);
        app.add_flag("--lines", options->lines, "every line that has code, with its count");
        app.add_option("--file", options->file, "this source file only")->type_name("FILE");
        auto* lcov = app.add_flag("--lcov", options->lcov, "print an lcov tracefile");
        app.add_option("--thread", question.shared.thread, "this one only; all if nothing is said")
            ->type_name(kThreadWord);
        app.add_option("--range", question.shared.range,
                       std::string("of these items only: ") + kRangeHelp)
            ->type_name("RANGE");
        add_thread_options(app, question.shared);
        lcov->excludes(app.get_option("--json"));
        return
            [options](const Invocation& invocation) { return show_coverage(*options, invocation); };
      },
      .take_program = {},
      .details =
          "A line counts as often as the instruction of it that was executed most; threads and "
          "functions are added up, but what a forked child has of its parent's past counts once. "
          "Only what the history holds is counted: the newest part. Shown "
          "are the files of which anything was executed; in a tracefile those that can be read "
          "here. The exit status is 1 when nothing of --file was executed.",
  };
}

}  // namespace tailtrace
