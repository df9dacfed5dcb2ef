#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/text.h"
#include "decoder/history/queries/find.h"
#include "decoder/history/queries/why_listing.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct WhyCommandOptions {
  HistoryOptions shared;
  std::string location;
  Wanted wanted;  // what that names
  std::optional<std::int64_t> at;
  std::uint64_t limit = 50;
};

// The item to be explained; one behind the newest: where the thread stands.
Result<std::uint64_t> item_asked_for(const WhyCommandOptions& options, const HistoryView& view) {
  const History& history = *view.history;
  const std::int64_t at = options.at.value_or(-1);
  if (!options.wanted.location) {
    std::optional<std::uint64_t> item = history.resolve(at);
    if (item) return options.at ? *item : *item + 1;
    if (history.size() == 0)
      return fail(ErrorCode::kNegative, fmt::format("there is no item {}", at),
                  "nothing was executed while it was recorded",
                  "tailtrace last shows where it stands");
    return fail(ErrorCode::kNegative, fmt::format("there is no item {}", at),
                fmt::format("the history has {}", history.size()));
  }
  std::uint64_t found = 0;
  std::optional<std::uint64_t> newest = history.resolve(at);
  if (newest)
    find_items(history, *view.symbols, {1, *newest}, options.wanted, Order::kNewestFirst,
               [&](std::uint64_t number) {
                 found = number;
                 return false;
               });
  if (found != 0) return found;
  return fail(ErrorCode::kNegative, location_text(*options.wanted.location) + " was not reached",
              "it is not in what is held");
}

Result<std::string> thread_told(std::string thread, std::string_view why, std::size_t count,
                                std::FILE* err) {
  fmt::print(err, "thread {} of {} {}; --thread=TID picks another\n", thread, count, why);
  return thread;
}

// If there are several and none is named: the one that was at the place last. Without a place the
// one of the crash, or that executed last.
Result<std::string> thread_asked_for(const WhyCommandOptions& options, std::FILE* err) {
  const std::string& named = options.shared.thread;
  if (!named.empty() || options.at) return named;
  Result<std::vector<ThreadSource>> threads = recorded_threads(options.shared.path);
  if (!threads) return fail(std::move(threads.error()));
  if (threads->size() == 1) return named;
  const auto cause = std::ranges::find_if(
      *threads, [](const ThreadSource& thread) { return !thread.cause.empty(); });
  if (!options.wanted.location && cause != threads->end())
    return thread_told(thread_text(*cause), "is that of " + printable(cause->cause),
                       threads->size(), err);
  QuestionOptions all;
  all.shared = options.shared;
  AskedProcesses asked;
  std::string newest;
  std::uint64_t time = 0;
  Result<std::uint64_t> gaps = each_thread(all, err, [&](HistoryView& view, bool) -> Result<void> {
    Result<std::uint64_t> item = item_asked_for(options, view);
    asked.add(view);
    if (!item && item.error().code == ErrorCode::kNegative) return {};
    if (!item) return fail(std::move(item.error()));
    HistoryCursor cursor(*view.history);
    cursor.seek(std::min(*item, view.history->newest()));
    if (!newest.empty() && cursor.item().time <= time) return {};
    newest = thread_text(view.thread);
    time = cursor.item().time;
    return {};
  });
  if (!gaps) return fail(std::move(gaps.error()));
  if (newest.empty() && !options.wanted.location) return named;
  if (newest.empty())
    if (auto missing = asked.missing(options.wanted)) return fail(std::move(*missing));
  if (newest.empty())
    return fail(ErrorCode::kNegative, options.location + " was not reached",
                fmt::format("it is not in what is held of {} threads", threads->size()));
  return thread_told(std::move(newest), "was there last", threads->size(), err);
}

std::string outcome_of(const Decision& decision, Symbolizer& symbols) {
  if (decision.kind == InstructionClass::kConditional)
    return decision.taken ? "taken" : "not taken";
  std::string place = place_text(symbols, decision.to, decision.epoch);
  return fmt::format("to {}", place.empty() ? json_address(decision.to) : place);
}

class WhyPrinter {
 public:
  WhyPrinter(const HistoryView& view, const WhyCommandOptions& options, const Reasons& reasons)
      : view_(view), options_(options), told_(reasons, options.limit), cursor_(*view.history) {}

  void list(const LineSink& sink) {
    sink(head_text());
    for (const FoldedDecisions& group : told_.groups()) {
      if (group.count > 1) sink(fmt::format("  x{} these {}:", group.times, group.count));
      for (std::size_t i = 0; i < group.count; ++i) sink(line(group, i));
    }
    sink(end_text());
  }

  void list_json(const LineSink& sink) {
    list_reasons_json(*view_.history, *view_.symbols, told_, sink);
  }

  std::string_view end_word() const { return told_.end_word(); }

 private:
  std::string position(std::uint64_t item) const {
    if (options_.shared.forward) return fmt::format("[{}]", item);
    return fmt::format("[-{}]", view_.history->size() - item + 1);
  }

  std::string head_text() {
    const std::uint64_t item = told_.reasons().item;
    if (item > view_.history->newest())
      return fmt::format("  next  {}", where_text(*view_.symbols, *view_.history->stop()));
    cursor_.seek(item);
    const HistoryItem& asked = cursor_.item();
    return fmt::format("  {}  {}", position(item),
                       asked.is_gap
                           ? gap_text(asked.gap)
                           : where_text(*view_.symbols, asked.instruction.address, asked.epoch));
  }

  std::string line(const FoldedDecisions& group, std::size_t i) {
    const Decision& decision = told_.decision(group, i);
    cursor_.seek(decision.item);
    const std::string text = decision.event ? event_text(*decision.event)
                                            : disassemble(cursor_.bytes(), decision.address);
    const Address where = decision.event ? decision.event->from : decision.address;
    std::string times;
    if (group.count == 1 && group.times > 1) times = fmt::format("  x{}", group.times);
    return fmt::format("    {:<8}  {:<26}  {:<22}  {}{}", position(decision.item), text,
                       outcome_of(decision, *view_.symbols), where_text(*view_.symbols, where),
                       times);
  }

  std::string end_text() const {
    if (told_.cut()) return "    there is more: --limit shows more of it";
    switch (told_.reasons().end) {
      case Reasons::End::kGap:
        return fmt::format("    -- before that is a gap, {} --",
                           position(told_.reasons().end_item));
      case Reasons::End::kLimit:
        return fmt::format("    not looked at further back than {}",
                           position(told_.reasons().end_item));
      case Reasons::End::kBegin:
        break;
    }
    return view_.history->complete() ? "    that is where the recording begins"
                                     : "    what was before that is not held";
  }

  const HistoryView& view_;
  const WhyCommandOptions& options_;
  ToldReasons told_;
  HistoryCursor cursor_;
};

// A file that is needed and not there: it would tell where a branch in it did not lead, which what
// was recorded does not. Nothing where there is none.
std::string missing_file(const HistoryView& view, const Reasons& reasons) {
  HistoryCursor cursor(*view.history);
  for (const Decision& decision : reasons.decisions) {
    if (decision.event || decision.kind != InstructionClass::kConditional) continue;
    cursor.seek(decision.item);
    const Instruction& branch = cursor.item().instruction;
    const Address other = decision.taken ? branch.next() : branch.target;
    const bool is_known = !view.history->frame().code->at(other, 1, decision.epoch).empty() ||
                          !view.symbols->code_in_file(other, decision.epoch).empty();
    const std::string& file = view.symbols->function_in(other, decision.epoch).module;
    if (!is_known && file.starts_with('/')) return file;
  }
  return {};
}

void warn_of_missing_file(const HistoryView& view, const Reasons& reasons, std::FILE* err) {
  const std::string file = missing_file(view, reasons);
  if (file.empty()) return;
  const Error problem{ErrorCode::kBadInput, "cannot tell which branches in " + file + " decided",
                      "it has the code that was not executed, and cannot be read",
                      "put it back there",
                      "those are shown, too, that may have made no difference"};
  fmt::print(err, "{}\n", problem.to_string());
}

Result<int> show_why(WhyCommandOptions options, const Invocation& invocation) {
  if (!options.location.empty()) {
    Result<Location> place = parse_location(options.location);
    if (!place) return fail(std::move(place.error()));
    options.wanted.location = std::move(*place);
    options.wanted.entries = true;
  }
  Result<std::string> thread = thread_asked_for(options, invocation.err);
  if (!thread) return fail(std::move(thread.error()));
  options.shared.thread = std::move(*thread);
  Answering answering(invocation.err);
  Result<HistoryView> view = open_view(options.shared, invocation.err, {}, &answering);
  if (!view) return fail(std::move(view.error()));
  Result<std::uint64_t> item = item_asked_for(options, *view);
  AskedProcesses asked;
  asked.add(*view);
  if (!item && answering.interrupted())
    return fail(ErrorCode::kNegative, options.location + " was not found yet",
                answering.interruption_text());
  if (!item)
    if (auto missing = asked.missing(options.wanted)) return fail(std::move(*missing));
  if (!item) return fail(std::move(item.error()));
  Result<Reasons> reasons = find_reasons(*view->history, *view->symbols, *item, kMaxReasons);
  if (!reasons) return fail(std::move(reasons.error()));
  answering.finish();
  warn_of_missing_file(*view, *reasons, invocation.err);
  WhyPrinter printer(*view, options, *reasons);
  if (options.shared.output->json == JsonForm::kNone) {
    print_lines([&](const LineSink& sink) { printer.list(sink); }, *options.shared.output,
                invocation.out);
    return view_status(*view, options.shared);
  }
  OrderedJson head = view_json(*view);
  if (reasons->item <= view->history->newest())
    head["item"] = reasons->item;
  else
    head["next"] = json_address(*view->history->stop());
  head["end"] = printer.end_word();
  Result<void> printed =
      print_objects([&](const LineSink& sink) { printer.list_json(sink); }, "tailtrace.why/1", head,
                    "reasons", *options.shared.output, invocation.out);
  if (!printed) return fail(std::move(printed.error()));
  return view_status(*view, options.shared);
}

}  // namespace

Command why_command() {
  return {
      .name = "why",
      .summary = "Show the branches that decided that a thread came to where it is",
      .usage = "[OPTIONS] PATH [LOCATION]",
      .examples =
          {
              {"tailtrace why SESSION", "how it came to where it stands"},
              {"tailtrace why SESSION abort", "... to a function, the last time"},
              {"tailtrace why --at=-500 SESSION", "... to an instruction of `tailtrace history`"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<WhyCommandOptions>();
        add_path(app, options->shared.path);
        app.add_option("LOCATION", options->location,
                       "its newest hit: FUNCTION, FILE:LINE, *ADDRESS or MODULE+OFFSET");
        app.add_option("--at", options->at, "to this item; with LOCATION, to a hit not after it")
            ->type_name("N");
        add_count(app, "--limit", options->limit, "show the newest N decisions");
        app.add_option("--thread", options->shared.thread,
                       "which one; that of the crash, or was there last; with --at the first")
            ->type_name(kThreadWord);
        add_thread_options(app, options->shared);
        return [options](const Invocation& invocation) { return show_why(*options, invocation); };
      },
      .take_program = {},
      .details =
          "Listed are, newest first, the branches and calls without which execution would not have "
          "come there: each decided about the one above it, and what made no difference is left "
          "out. Decisions that were made again and again, as by a loop, are one line with their "
          "number. The exit status is 1 when the location was not reached.",
  };
}

}  // namespace tailtrace
