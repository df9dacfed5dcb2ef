#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/history/calls/call_listing.h"
#include "decoder/history/calls/newest_calls.h"
#include "decoder/history/calls/whole_calls.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/history_view.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kCallsPage = 50;

struct CallsCommandOptions {
  HistoryOptions shared;
  std::uint64_t newest = ~0ull;
  bool flat = false;
  bool fold = false;
  bool times = false;
  std::int32_t depth = kAllLevels;
  std::uint64_t limit = kCallsPage;  // of a function's calls
};

bool is_range(std::string_view text) {
  return text.empty() || text == "all" ||
         std::string_view("+-0123456789").find(text.front()) != text.npos;
}

Result<int> print_calls(const HistoryView& view, const CallHistory& calls, const Range& range,
                        const CallsCommandOptions& options, const Invocation& invocation) {
  const OutputOptions& output = *options.shared.output;
  const History& history = *view.history;
  if (output.json == JsonForm::kNone) {
    CallListingOptions listing;
    listing.from_newest = !options.shared.forward;
    listing.indent = !options.flat;
    listing.fold = options.fold;
    listing.times = options.times;
    listing.depth = options.depth;
    print_lines(
        [&](const LineSink& sink) {
          list_calls(history, calls, *view.symbols, range, listing, sink);
        },
        output, invocation.out);
    return view_status(view, options.shared);
  }
  nlohmann::ordered_json head = view_json(view);
  head["segments"] = calls.size();
  Result<void> printed = print_objects(
      [&](const LineSink& sink) {
        list_calls_json(history, calls, *view.symbols, range, sink, JsonNumbers::kBoth,
                        options.depth);
      },
      "tailtrace.calls/1", head, "calls", output, invocation.out);
  if (!printed) return fail(std::move(printed.error()));
  return view_status(view, options.shared);
}

Result<CallHistory> calls_of_newest(const HistoryView& view, std::uint64_t newest) {
  auto calls = CallHistory::make(*view.history, *view.symbols, newest_items(*view.history, newest));
  if (!calls) calls.error().fix += ": --newest=N";
  return calls;
}

// As many calls as it takes to show what is asked for.
Result<CallHistory> calls_to_show(HistoryView& view, const std::string& range) {
  return newest_calls(*view.history, *view.symbols, [&](std::uint64_t segments) {
    Result<Range> shown = parse_range(range, {segments, kCallsPage, {}});
    return shown && shown->first > 1;
  });
}

void print_calls_of(const HistoryView& view, const CallHistory& calls, const WholeCalls& found,
                    const CallsCommandOptions& options, std::FILE* out) {
  print_lines(
      [&](const LineSink& sink) {
        list_whole_calls(*view.history, calls, *view.symbols, found.newest, !options.shared.forward,
                         sink);
      },
      *options.shared.output, out);
  std::string older;
  if (found.newest.size() < found.count)
    older = fmt::format(", the newest {} shown", found.newest.size());
  const bool to_oldest = options.newest == ~0ull;
  if (to_oldest) older += overwritten_text(overwritten_records(view.history->frame()));
  fmt::print(out, "  {} {}{}\n", found.count, found.count == 1 ? "call" : "calls", older);
}

Result<int> show_calls_of(const CallsCommandOptions& options, const std::string& function,
                          const Invocation& invocation) {
  Answering answering(invocation.err);
  Result<HistoryView> view = open_view(options.shared, invocation.err, {}, &answering);
  if (!view) return fail(std::move(view.error()));
  Result<LocationMatcher> named = functions_named(function, *view->symbols);
  if (!named) return fail(std::move(named.error()));
  Result<CallHistory> calls = calls_of_newest(*view, options.newest);
  if (!calls) return fail(std::move(calls.error()));
  answering.finish();
  const WholeCalls found = calls_of(*calls, *named, options.limit);
  const OutputOptions& output = *options.shared.output;
  std::optional<Error> missing;
  AskedProcesses asked;
  asked.add(*view);
  Wanted begins;
  begins.location = named->location();
  begins.entries = true;
  if (found.count == 0) missing = asked.missing(begins);
  if (output.json == JsonForm::kNone) {
    if (missing) return fail(std::move(*missing));
    print_calls_of(*view, *calls, found, options, invocation.out);
  } else {
    nlohmann::ordered_json head = view_json(*view);
    head["count"] = found.count;
    Result<void> printed = print_objects(
        [&](const LineSink& sink) {
          list_whole_calls_json(*view->history, *calls, *view->symbols, found.newest, sink);
        },
        "tailtrace.calls/1", head, "calls", output, invocation.out);
    if (!printed) return fail(std::move(printed.error()));
  }
  if (missing) return fail(std::move(*missing));
  Result<int> status = view_status(*view, options.shared);
  return status && found.count == 0 ? kExitNegative : status;
}

Result<int> show_calls(CallsCommandOptions options, const Invocation& invocation) {
  if (!invocation.program.empty()) options.shared.range = invocation.program.front();
  if (!is_range(options.shared.range))
    return show_calls_of(options, options.shared.range, invocation);
  using Numbers = HistorySettings::Numbers;
  bool near = is_near_newest(options.shared);
  Answering answering(invocation.err);
  Result<HistoryView> view =
      open_view(options.shared, invocation.err, near ? Numbers::kFromNewest : Numbers::kFromOldest,
                &answering);
  if (!view) return fail(std::move(view.error()));
  Result<CallHistory> calls = near && options.newest == ~0ull
                                  ? calls_to_show(*view, options.shared.range)
                                  : calls_of_newest(*view, options.newest);
  if (!calls) return fail(std::move(calls.error()));
  answering.finish();
  Result<Range> range = parse_range(options.shared.range, {calls->size(), kCallsPage, {}});
  if (!range) return fail(std::move(range.error()));
  return print_calls(*view, *calls, *range, options, invocation);
}

}  // namespace

Command calls_command() {
  return {
      .name = "calls",
      .summary = "Show the functions that a recorded thread went through, newest last",
      .usage = "[OPTIONS] PATH [RANGE | FUNCTION]",
      .examples =
          {
              {"tailtrace calls SESSION", "the newest 50 stretches of functions"},
              {"tailtrace calls --forward SESSION 1,+30", "the oldest 30, numbered as GDB does"},
              {"tailtrace calls --newest=100000 SESSION", "of the newest instructions only"},
              {"tailtrace calls SESSION Worker::step", "each call of a function, and its caller"},
          },
      .elsewhere = {"function-calls", "ftrace", "ltrace"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<CallsCommandOptions>();
        add_history_options(app, options->shared);
        CLI::Option* range = app.get_option("RANGE");
        range->description(range->get_description() + "; or FUNCTION");
        add_count(app, "--newest", options->newest, "look at the newest N instructions only");
        add_count(app, "--limit", options->limit, "of FUNCTION, show the newest N calls");
        app.add_flag("--flat", options->flat, "do not indent by call level");
        app.add_option("--depth", options->depth, "the outermost N levels only")
            ->type_name("N")
            ->check(number_between(1, kAllLevels));
        app.add_flag("--times", options->times, "show the last known times");
        app.add_flag("--fold", options->fold, "a line for what each loop calls");
        return [options](const Invocation& invocation) { return show_calls(*options, invocation); };
      },
      .take_program = take_range,
      .details =
          "Stretches and their numbers are those of GDB's `record function-call-history`; who "
          "called whom is right also where that loses the stack, as behind signals and in "
          "coroutines. "
          "The last column is the range of instructions, for `tailtrace history`. For the newest "
          "stretches only as much of the history is read as they take, and indented from the "
          "outermost function in it; with --forward, --json or --newest=N that is all, or N. "
          "FUNCTION is a name, or FILE:FUNCTION or MODULE`FUNCTION; the exit status is 1 when it "
          "was not called in what is held.",
  };
}

}  // namespace tailtrace
