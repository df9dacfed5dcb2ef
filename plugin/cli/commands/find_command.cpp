#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/history/queries/find.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

struct FindCommandOptions {
  QuestionOptions question;
  std::string location, kind;
  std::uint64_t since = 0, until = ~0ull;
  bool oldest = false;
};

Result<Wanted> wanted_of(const FindCommandOptions& options) {
  Wanted wanted;
  wanted.since = options.since;
  wanted.until = options.until;
  if (!options.location.empty()) {
    Result<Location> location = parse_location(options.location);
    if (!location) return fail(std::move(location.error()));
    wanted.location = std::move(*location);
  }
  if (!options.kind.empty()) {
    Result<ItemKind> kind = parse_item_kind(options.kind);
    if (!kind) return fail(std::move(kind.error()));
    wanted.kind = *kind;
  }
  return wanted;
}

std::vector<std::uint64_t> found_in(const HistoryView& view, Range range, const Wanted& wanted,
                                    const FindCommandOptions& options) {
  std::vector<std::uint64_t> found;
  Order order = options.oldest ? Order::kOldestFirst : Order::kNewestFirst;
  find_items(*view.history, *view.symbols, range, wanted, order, [&](std::uint64_t number) {
    found.push_back(number);
    return found.size() < options.question.limit;
  });
  std::sort(found.begin(), found.end());
  return found;
}

void print_found(const HistoryView& view, const std::vector<std::uint64_t>& found,
                 const FindCommandOptions& options, AnswerPrinter& printer) {
  if (printer.is_json()) {
    list_items_json(*view.history, *view.symbols, found, printer.object_sink());
    return;
  }
  ListingOptions listing;
  listing.from_newest = !options.question.shared.forward;
  listing.addresses = true;
  listing.times = true;
  list_items(*view.history, *view.symbols, found, listing, printer.line_sink());
}

Result<int> show_found(const FindCommandOptions& options, const Invocation& invocation) {
  Result<Wanted> wanted = wanted_of(options);
  if (!wanted) return fail(std::move(wanted.error()));
  AnswerPrinter printer("tailtrace.find/1", "items", options.question, invocation.out);
  bool any = false;
  AskedProcesses asked;
  Result<std::uint64_t> gaps = each_thread(
      options.question, invocation.err,
      [&](HistoryView& view, bool several) -> Result<void> {
        Result<Range> range = asked_range(options.question, *view.history);
        if (!range) return fail(std::move(range.error()));
        std::vector<std::uint64_t> found = found_in(view, *range, *wanted, options);
        any = any || !found.empty();
        if (options.question.limit == 0) found.clear();
        asked.add(view);
        if (found.empty() && !printer.is_json()) return {};
        printer.begin(view, several);
        print_found(view, found, options, printer);
        printer.end();
        return {};
      },
      &printer);
  if (!gaps) return fail(std::move(gaps.error()));
  printer.finish();
  if (!any)
    if (auto missing = asked.missing(*wanted)) return fail(std::move(*missing));
  if (!any && options.question.limit != 0 && !printer.is_json())
    printer.line("nothing was found in what is held");
  return question_status(any, *gaps, options.question);
}

}  // namespace

Command find_command() {
  return {
      .name = "find",
      .summary = "Find instructions, gaps and events by place, kind, thread and time",
      .usage = "[OPTIONS] PATH",
      .examples =
          {
              {"tailtrace find --in=parse SESSION", "the newest 50 instructions in a function"},
              {"tailtrace find --in=parse.c:88 --kind=taken SESSION", "taken branches of a line"},
              {"tailtrace find --kind=signal SESSION", "where signals came in"},
              {"tailtrace find --kind=gap --thread=4711 SESSION", "what one thread lacks"},
              {"tailtrace find --since=90000 --until=95000 SESSION", "in a stretch of time"},
          },
      .elsewhere = {"search", "grep"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<FindCommandOptions>();
        add_path(app, options->question.shared.path);
        app.add_option("--in", options->location,
                       "instructions of FUNCTION, FILE:LINE, *ADDRESS, MODULE+OFFSET")
            ->type_name("LOCATION");
        app.add_option("--kind", options->kind, "call, return, taken, not-taken, gap, signal, ...")
            ->type_name("KIND");
        add_count(app, "--since", options->since, "not before this time")->type_name("TIME");
        add_count(app, "--until", options->until, "not after this time")->type_name("TIME");
        app.add_flag("--oldest", options->oldest, "the oldest N instead of the newest");
        add_question_options(app, options->question);
        return [options](const Invocation& invocation) { return show_found(*options, invocation); };
      },
      .take_program = {},
      .details =
          "All that is given must hold. Times are those that `find` and `history --json` show: in "
          "the units of the recorder's clock, the last known before the instruction. The exit "
          "status is 1 when nothing is found. A word that is no kind is answered with all of them.",
  };
}

}  // namespace tailtrace
