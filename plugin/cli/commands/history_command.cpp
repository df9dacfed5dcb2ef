#include <nlohmann/json.hpp>

#include "decoder/history/item_range.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/history_view.h"
#include "plugin/cli/merged_history.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kPage = 50;

struct HistoryCommandOptions {
  HistoryOptions shared;
  ListingOptions listing;
  bool merged = false;
};

Result<int> show_history(const HistoryCommandOptions& options, const Invocation& invocation) {
  HistoryOptions shared = options.shared;
  if (!invocation.program.empty()) shared.range = invocation.program.front();
  if (options.merged) {
    ListingOptions listing = options.listing;
    listing.from_newest = !shared.forward;
    return show_merged(shared, listing, kPage, invocation);
  }
  using Numbers = HistorySettings::Numbers;
  Numbers numbers = is_near_newest(shared) ? Numbers::kFromNewest : Numbers::kFromOldest;
  Result<HistoryView> view = open_view(shared, invocation.err, numbers);
  if (!view) return fail(std::move(view.error()));
  const History& history = *view->history;
  Result<Range> range = item_range(history, shared.range, kPage);
  if (!range) return fail(std::move(range.error()));
  ListingOptions listing = options.listing;
  listing.from_newest = !shared.forward;
  if (shared.output->json == JsonForm::kNone) {
    print_lines(
        [&](const LineSink& sink) {
          list_instructions(history, *view->symbols, *range, listing, sink);
        },
        *shared.output, invocation.out);
    return view_status(*view, shared);
  }
  Result<void> printed = print_objects(
      [&](const LineSink& sink) {
        if (listing.fold)
          list_folded_json(history, *view->symbols, *range, sink);
        else
          list_instructions_json(history, *view->symbols, *range, sink);
      },
      "tailtrace.history/1", view_json(*view), "items", *shared.output, invocation.out);
  if (!printed) return fail(std::move(printed.error()));
  return view_status(*view, shared);
}

}  // namespace

Command history_command() {
  return {
      .name = "history",
      .summary = "Show the instructions that a recorded thread executed, newest last",
      .usage = "[OPTIONS] PATH [RANGE]",
      .examples =
          {
              {"tailtrace history SESSION", "the newest 50"},
              {"tailtrace history SESSION -500,-1", "the newest 500"},
              {"tailtrace history --lines SESSION 1,+20", "the oldest 20, with source lines"},
              {"tailtrace history --merged SESSION -500,-1", "the newest 500 of all threads"},
              {"tailtrace history --json=lines SESSION all | jq .", "all of them, for a program"},
          },
      .elsewhere = {"instructions", "source", "list", "dump", "script", "log"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<HistoryCommandOptions>();
        add_history_options(app, options->shared);
        app.add_flag("--lines", options->listing.lines, "a header for each source line");
        app.add_flag("--addresses", options->listing.addresses, "show addresses");
        app.add_flag("--bytes", options->listing.bytes, "show the bytes of instructions");
        app.add_flag("--times", options->listing.times, "show the last known times");
        app.add_flag("--fold", options->listing.fold, "a line for each loop");
        app.add_flag("--merged", options->merged, "of all threads, in the order of time");
        return
            [options](const Invocation& invocation) { return show_history(*options, invocation); };
      },
      .take_program = take_range,
      .details =
          "Ranges are those of GDB's `record instruction-history`. In `N,-K` with N above "
          "0, K is a count; with N below 0 the second number is a position too. With --merged, the "
          "newest items of all threads are shown by stretches between two known times of a thread; "
          "where a stretch may have begun before one above it had ended, that is said. With "
          "--json, --fold has an object for each loop in the place of its items.",
  };
}

}  // namespace tailtrace
