#include <fmt/format.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "plugin/cli/commands.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

struct HitsCommandOptions {
  QuestionOptions question;
  PlaceOptions place;
};

// The newest ones, oldest first, and how many there are.
struct Hits {
  std::vector<std::uint64_t> newest;
  std::uint64_t count = 0;
};

Hits hits_of(const HistoryView& view, Range range, const Wanted& wanted, std::uint64_t limit) {
  Hits hits;
  find_items(*view.history, *view.symbols, range, wanted, Order::kNewestFirst,
             [&](std::uint64_t number) {
               if (hits.count++ < limit) hits.newest.push_back(number);
               return true;
             });
  std::reverse(hits.newest.begin(), hits.newest.end());
  return hits;
}

void print_hits(const HistoryView& view, const Hits& hits, std::uint64_t overwritten,
                const HitsCommandOptions& options, AnswerPrinter& printer) {
  const History& history = *view.history;
  if (printer.is_json()) {
    printer.add({{"count", hits.count}});
    list_items_json(history, *view.symbols, hits.newest, printer.object_sink());
    return;
  }
  ListingOptions listing;
  listing.from_newest = !options.question.shared.forward;
  listing.addresses = true;
  listing.times = true;
  list_items(history, *view.symbols, hits.newest, listing, printer.line_sink());
  std::string older;
  if (hits.newest.size() < hits.count)
    older = fmt::format(", the newest {} shown", hits.newest.size());
  printer.line(fmt::format("  {} {}{}{}", hits.count, hits.count == 1 ? "hit" : "hits", older,
                           overwritten_text(overwritten)));
}

Result<int> show_hits(const HitsCommandOptions& options, const Invocation& invocation) {
  Result<Wanted> wanted = wanted_place(options.place);
  if (!wanted) return fail(std::move(wanted.error()));
  AnswerPrinter printer("tailtrace.hits/1", "hits", options.question, invocation.out);
  std::uint64_t all = 0, all_overwritten = 0;
  AskedProcesses asked;
  Result<std::uint64_t> gaps = each_thread(
      options.question, invocation.err,
      [&](HistoryView& view, bool several) -> Result<void> {
        Result<Range> range = asked_range(options.question, *view.history);
        if (!range) return fail(std::move(range.error()));
        Hits hits = hits_of(view, *range, *wanted, options.question.limit);
        asked.add(view);
        all += hits.count;
        // What is older than a range that was asked for is not asked for.
        const bool to_oldest = range->first <= 1;
        const std::uint64_t overwritten =
            to_oldest ? overwritten_records(view.history->frame()) : 0;
        all_overwritten += overwritten;
        if (hits.count == 0 && !printer.is_json()) return {};
        printer.begin(view, several);
        print_hits(view, hits, overwritten, options, printer);
        printer.end();
        return {};
      },
      &printer);
  if (!gaps) return fail(std::move(gaps.error()));
  printer.finish();
  if (all == 0)
    if (auto missing = asked.missing(*wanted)) return fail(std::move(*missing));
  if (all == 0 && !printer.is_json()) printer.line("  0 hits" + overwritten_text(all_overwritten));
  return question_status(all != 0, *gaps, options.question);
}

}  // namespace

Command hits_command() {
  return {
      .name = "hits",
      .summary = "Show when a place in the code was reached, and how often",
      .usage = "[OPTIONS] PATH LOCATION",
      .examples =
          {
              {"tailtrace hits SESSION worker.cc:88", "where a breakpoint would have stopped"},
              {"tailtrace hits SESSION Worker::step", "a function was entered"},
              {"tailtrace hits --limit=5 SESSION '*0x401136'", "an instruction, the newest 5"},
              {"tailtrace hits SESSION libc.so.6+0x27fd0", "an address of a file, as objdump's"},
          },
      .elsewhere = {"breakpoints", "break"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<HitsCommandOptions>();
        add_path(app, options->question.shared.path);
        add_place_options(app, options->place);
        add_question_options(app, options->question);
        return [options](const Invocation& invocation) { return show_hits(*options, invocation); };
      },
      .take_program = {},
      .details =
          "A function is reached at its first instruction, an inlined one at that of each of its "
          "places; a source line where its first statement begins in each block of a function, as "
          "by GDB's breakpoints. The exit status is 1 when it was never reached in what is held.",
  };
}

}  // namespace tailtrace
