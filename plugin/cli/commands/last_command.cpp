#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "decoder/base/json_text.h"
#include "decoder/base/text.h"
#include "decoder/history/calls/path_listing.h"
#include "decoder/history/calls/stop_stack.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct LastCommandOptions {
  QuestionOptions question;
  PlaceOptions place;
  std::int64_t at = -1;
  std::uint64_t frames = 50;

  LastCommandOptions() { question.limit = 1; }
};

// The items whose callers are asked for: hits, or where no place is named the one at --at. Any at
// least: whether there is one is an answer, too.
Result<std::vector<std::uint64_t>> asked_items(const HistoryView& view,
                                               const LastCommandOptions& options,
                                               const std::optional<Wanted>& wanted) {
  std::vector<std::uint64_t> found;
  Result<Range> range = asked_range(options.question, *view.history);
  if (!range) return fail(std::move(range.error()));
  const auto newest = view.history->resolve(options.at);
  if (!newest) return found;
  if (!wanted) return std::vector{*newest};
  range->last = std::min(range->last, *newest);
  if (range->size() == 0) return found;
  find_items(*view.history, *view.symbols, *range, *wanted, Order::kNewestFirst,
             [&](std::uint64_t number) {
               found.push_back(number);
               return found.size() < options.question.limit;
             });
  return found;
}

// What is shown of an item of a path.
class PathPrinter {
 public:
  PathPrinter(const HistoryView& view, const LastCommandOptions& options, AnswerPrinter& printer)
      : view_(view), options_(options), printer_(printer), cursor_(*view.history) {}

  void print(const CallHistory& calls, std::uint64_t item) {
    CallPath path = call_path(*view_.history, *view_.symbols, calls, item, options_.frames);
    add_older_callers(*view_.history, *view_.symbols, calls, view_.stack, options_.frames, path);
    if (printer_.is_json())
      print_json(path, item);
    else
      print_text(path, item);
  }

 private:
  void print_text(const CallPath& path, std::uint64_t item) {
    if (path.frames.empty()) return printer_.line("  there is a gap at this position");
    PathListing listing{options_.question.shared.forward,
                        "    and further callers: --frames shows more"};
    list_path(*view_.history, *view_.symbols, path, item, listing, [&](std::string_view line) {
      printer_.line(std::string(line));
      return true;
    });
  }

  void print_json(const CallPath& path, std::uint64_t item) {
    OrderedJson hit;
    list_items_json(*view_.history, *view_.symbols, std::vector<std::uint64_t>{item},
                    [&](std::string_view object) {
                      hit = OrderedJson::parse(object);
                      return true;
                    });
    OrderedJson& frames = hit["path"] = OrderedJson::array();
    for (const PathFrame& frame : path.frames) frames.push_back(frame_json(frame));
    for (const OlderCaller& caller : path.older) {
      frames.push_back(place_json(caller.function, caller.address, kNewestEpoch));
      frames.back()["before_history"] = true;
    }
    if (path.cut) hit["path_cut"] = true;
    printer_.add_object(json_text(hit));
  }

  OrderedJson frame_json(const PathFrame& frame) {
    cursor_.seek(frame.item);
    OrderedJson json = {{"number", frame.item}};
    const Address here = cursor_.item().instruction.address;
    json.update(
        place_json(frame.function, frame.event ? frame.event->from : here, cursor_.item().epoch));
    if (frame.event) json["event"] = kind_name(frame.event->kind);
    if (frame.event && frame.event->extra != 0) json["code"] = frame.event->extra;
    if (frame.is_return) json["returned_to"] = true;
    if (frame.tail_called) json["tail_called"] = true;
    return json;
  }

  OrderedJson place_json(const Function* function, Address address, Epoch when) {
    OrderedJson json = {{"address", json_address(address)}};
    if (!function->name.empty()) json["function"] = function->name;
    if (!function->module.empty()) json["module"] = function->module;
    if (auto line = view_.symbols->line_at(address, when)) {
      json["file"] = line->file;
      json["line"] = line->line;
    }
    return json;
  }

  const HistoryView& view_;
  const LastCommandOptions& options_;
  AnswerPrinter& printer_;
  HistoryCursor cursor_;
};

// The newest of the hits up to which the calls of one history hold this one, and what called it.
std::uint64_t newest_near(const std::vector<std::uint64_t>& hits, std::size_t i) {
  std::uint64_t newest = hits[i];
  for (std::size_t j = i; j-- != 0 && hits[j] - hits[i] < CallHistory::kMaxSegments / 2;)
    newest = hits[j];
  return newest;
}

// Those that were found before it was interrupted: what called them is not known then.
void print_without_paths(const HistoryView& view, std::span<const std::uint64_t> newest_first,
                         const LastCommandOptions& options, AnswerPrinter& printer) {
  const std::vector<std::uint64_t> hits(newest_first.rbegin(), newest_first.rend());
  if (printer.is_json())
    return list_items_json(*view.history, *view.symbols, hits, printer.object_sink());
  ListingOptions listing;
  listing.from_newest = !options.question.shared.forward;
  listing.addresses = true;
  list_items(*view.history, *view.symbols, hits, listing, printer.line_sink());
}

Result<void> print_last(const HistoryView& view, const std::vector<std::uint64_t>& hits,
                        const LastCommandOptions& options, AnswerPrinter& printer) {
  const History& history = *view.history;
  PathPrinter paths(view, options, printer);
  std::optional<CallHistory> calls;
  for (std::size_t i = hits.size(); i-- != 0;) {
    if (!calls || !calls->holding(hits[i])) {
      auto made = calls_up_to(history, *view.symbols, anchor_of(history, newest_near(hits, i)));
      if (history.is_abandoned()) {
        print_without_paths(view, std::span(hits).first(i + 1), options, printer);
        return {};
      }
      if (!made) return fail(std::move(made.error()));
      calls = std::move(*made);
    }
    paths.print(*calls, hits[i]);
  }
  return {};
}

// Of a thread that waited all the time, for a system call mostly: what it stands in is known.
void print_standing(const HistoryView& view, const LastCommandOptions& options,
                    AnswerPrinter& printer) {
  const auto shown = std::span(view.stack).first(std::min(view.stack.size(), options.frames));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    // What a call goes on with may be another line, or another function.
    const Address place{shown[i].value - (i == 0 ? 0 : 1)};
    printer.line((i == 0 ? "  stands in " : "    called from ") +
                 where_text(*view.symbols, place, kNewestEpoch));
  }
  if (view.stack.size() > options.frames)
    printer.line("    and further callers: --frames shows more");
}

tl::unexpected<Error> no_such_item(const LastCommandOptions& options, bool executed) {
  return fail(ErrorCode::kNegative, fmt::format("there is no item {}", options.at),
              executed ? "" : "nothing was executed while it was recorded");
}

Result<int> show_last(const LastCommandOptions& options, const Invocation& invocation) {
  std::optional<Wanted> wanted;
  if (!options.place.location.empty()) {
    Result<Wanted> place = wanted_place(options.place);
    if (!place) return fail(std::move(place.error()));
    wanted = std::move(*place);
  }
  AnswerPrinter printer("tailtrace.last/1", "hits", options.question, invocation.out);
  bool any = false, executed = false;
  AskedProcesses asked;
  Result<std::uint64_t> gaps = each_thread(
      options.question, invocation.err,
      [&](HistoryView& view, bool several) -> Result<void> {
        auto items = asked_items(view, options, wanted);
        if (!items) return fail(std::move(items.error()));
        any = any || !items->empty();
        if (options.question.limit == 0) items->clear();
        asked.add(view);
        const bool is_empty = view.history->resolve(-1) == std::nullopt;
        const bool stands =
            is_empty && !wanted && options.at == -1 && !view.stack.empty() && !printer.is_json();
        executed = executed || !is_empty;
        if (items->empty() && !stands && !printer.is_json()) return {};
        printer.begin(view, several);
        if (stands) print_standing(view, options, printer);
        Result<void> printed = print_last(view, *items, options, printer);
        printer.end();
        return printed;
      },
      &printer);
  if (!gaps) return fail(std::move(gaps.error()));
  if (!any && !wanted) return no_such_item(options, executed);
  printer.finish();
  if (!any)
    if (auto missing = asked.missing(*wanted)) return fail(std::move(*missing));
  if (!any && !printer.is_json())
    fmt::print(invocation.err, "{} was not reached in what is held\n",
               printable(location_text(*wanted->location)));
  return question_status(any, *gaps, options.question);
}

}  // namespace

Command last_command() {
  return {
      .name = "last",
      .summary = "Show when a place in the code was reached last, and by which calls",
      .usage = "[OPTIONS] PATH [LOCATION]",
      .examples =
          {
              {"tailtrace last SESSION free", "who called it last"},
              {"tailtrace last --limit=3 SESSION worker.cc:88", "the newest three times"},
              {"tailtrace last --inside SESSION parse", "the newest instruction of a function"},
              {"tailtrace last SESSION", "by which calls it came to its newest instruction"},
              {"tailtrace last --at=-500 SESSION", "... to an instruction of `tailtrace history`"},
          },
      .elsewhere = {"stack", "backtrace", "bt", "where"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<LastCommandOptions>();
        add_path(app, options->question.shared.path);
        add_place_options(app, options->place);
        app.get_option("LOCATION")->required(false);
        app.add_option("--at", options->at,
                       "this item instead of the newest; with LOCATION, hits not after it")
            ->type_name("N");
        add_count(app, "--frames", options->frames, "show the innermost N calls, 1 at least", 1);
        add_question_options(app, options->question);
        return [options](const Invocation& invocation) { return show_last(*options, invocation); };
      },
      .take_program = {},
      .details =
          "Positions are those of `tailtrace history`. Of a call that began before the history "
          "does, only what returned to it is known, and its callers where the recording has the "
          "stack of its end, as the bundles of the always-on recorder do. The exit status is 1 "
          "when the place was never reached in what is held.",
  };
}

}  // namespace tailtrace
