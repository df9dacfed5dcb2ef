#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "decoder/history/queries/stats.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Counts = std::map<std::string, std::uint64_t>;

std::string counts_text(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text.empty() ? "none" : text;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string name_of(const FunctionStats& function) {
  if (!function.name.empty()) return function.name;
  return function.module.empty() ? "??" : fmt::format("?? ({})", base_name(function.module));
}

void print_text(const HistoryStats& stats, std::uint64_t limit, AnswerPrinter& printer) {
  printer.line(fmt::format("  instructions  {}, {} different ones", stats.instructions,
                           stats.distinct_instructions));
  printer.line(
      fmt::format("  conditionals  {}, {} of them taken", stats.conditionals,
                  stats.conditionals == 0 ? "none" : percent(stats.taken, stats.conditionals)));
  printer.line("  transfers     " + counts_text(stats.branches));
  printer.line("  events        " + counts_text(stats.events));
  printer.line("  gaps          " + counts_text(stats.gaps));
  if (stats.first_time != 0)
    printer.line(fmt::format("  time          {} to {}", stats.first_time, stats.last_time));
  printer.line(fmt::format("  functions     {}", stats.functions.size()));
  std::size_t shown = std::min<std::size_t>(stats.functions.size(), limit);
  if (shown != 0) printer.line("    instructions           entered  function");
  for (std::size_t i = 0; i < shown; ++i) {
    const FunctionStats& function = stats.functions[i];
    printer.line(fmt::format("    {:>12}  {:>7}  {:>7}  {}", function.instructions,
                             percent(function.instructions, stats.instructions), function.entries,
                             name_of(function)));
  }
}

void print_objects(const HistoryStats& stats, std::uint64_t limit, AnswerPrinter& printer) {
  OrderedJson members = {{"instructions", stats.instructions},
                         {"distinct_instructions", stats.distinct_instructions},
                         {"conditionals", stats.conditionals},
                         {"taken", stats.taken},
                         {"transfers", OrderedJson(stats.branches)},
                         {"events", OrderedJson(stats.events)},
                         {"gap_reasons", OrderedJson(stats.gaps)}};
  if (stats.first_time != 0) {
    members["first_time"] = stats.first_time;
    members["last_time"] = stats.last_time;
  }
  members["number_of_functions"] = stats.functions.size();
  printer.add(members);
  for (std::size_t i = 0; i < std::min<std::size_t>(stats.functions.size(), limit); ++i) {
    const FunctionStats& function = stats.functions[i];
    OrderedJson json = {{"instructions", function.instructions}, {"entries", function.entries}};
    if (!function.name.empty()) json["function"] = function.name;
    if (!function.module.empty()) json["module"] = function.module;
    printer.add_object(json_text(json));
  }
}

Result<int> show_stats(const QuestionOptions& options, const Invocation& invocation) {
  AnswerPrinter printer("tailtrace.stats/1", "functions", options, invocation.out);
  Result<std::uint64_t> gaps =
      each_thread(options, invocation.err, [&](HistoryView& view, bool several) -> Result<void> {
        Result<Range> range = asked_range(options, *view.history);
        if (!range) return fail(std::move(range.error()));
        HistoryStats stats = make_stats(*view.history, *view.symbols, *range);
        printer.begin(view, several);
        if (printer.is_json())
          print_objects(stats, options.limit, printer);
        else
          print_text(stats, options.limit, printer);
        printer.end();
        return {};
      });
  if (!gaps) return fail(std::move(gaps.error()));
  printer.finish();
  return question_status(true, *gaps, options);
}

}  // namespace

Command stats_command() {
  return {
      .name = "stats",
      .summary = "Count what each thread executed: branches, events, the busiest functions",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace stats SESSION", "all of every thread"},
              {"tailtrace stats --range=-10000,-1 --limit=10 SESSION", "what was it busy with?"},
          },
      .elsewhere = {"report", "top", "summary"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<QuestionOptions>();
        options->limit = 20;
        add_path(app, options->shared.path);
        add_question_options(app, *options, "show the N busiest functions of each thread");
        return [options](const Invocation& invocation) { return show_stats(*options, invocation); };
      },
      .take_program = {},
      .details =
          "Transfers are branches that led elsewhere than to the next instruction. A function was "
          "entered as often as its first instruction was executed, which `tailtrace hits` shows; "
          "`tailtrace calls` has what led into its middle, too, as mempcpy does into memcpy.",
  };
}

}  // namespace tailtrace
