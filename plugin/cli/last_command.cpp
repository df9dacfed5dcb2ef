#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/text.h"
#include "decoder/history/path_listing.h"
#include "decoder/history/stop_stack.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/question.h"

namespace tailtrace {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  QuestionOptions question;
  PlaceOptions place;
  std::uint64_t frames = 50;

  Options() { question.limit = 1; }
};

std::vector<std::uint64_t> newest_hits(const HistoryView& view, Range range, const Wanted& wanted,
                                       std::uint64_t limit) {
  std::vector<std::uint64_t> found;
  if (limit == 0) return found;
  find_items(*view.history, *view.symbols, range, wanted, Order::kNewestFirst,
             [&](std::uint64_t number) {
               found.push_back(number);
               return found.size() < limit;
             });
  return found;
}

// What is shown of an item of a path.
class PathPrinter {
 public:
  PathPrinter(const HistoryView& view, const Options& options, AnswerPrinter& printer)
      : view_(view), options_(options), printer_(printer), cursor_(*view.history) {}

  void print(const CallHistory& calls, std::uint64_t item) {
    CallPath path = call_path(calls, item, options_.frames);
    add_older_callers(*view_.history, *view_.symbols, calls, view_.stack, options_.frames, path);
    if (printer_.is_json())
      print_json(path, item);
    else
      print_text(path, item);
  }

 private:
  void print_text(const CallPath& path, std::uint64_t item) {
    PathListing listing{options_.question.shared.forward,
                        "    and further callers: --frames shows more"};
    list_path(*view_.history, *view_.symbols, path, item, listing, [&](std::string_view line) {
      printer_.line(std::string(line));
      return true;
    });
  }

  void print_json(const CallPath& path, std::uint64_t item) {
    Json hit;
    list_items_json(*view_.history, *view_.symbols, std::vector<std::uint64_t>{item},
                    [&](std::string_view object) {
                      hit = Json::parse(object);
                      return true;
                    });
    Json& frames = hit["path"] = Json::array();
    for (const PathFrame& frame : path.frames) frames.push_back(frame_json(frame));
    for (const OlderCaller& caller : path.older) {
      frames.push_back(place_json(caller.function, caller.address));
      frames.back()["before_history"] = true;
    }
    if (path.cut) hit["path_cut"] = true;
    printer_.add_object(hit.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  Json frame_json(const PathFrame& frame) {
    cursor_.seek(frame.item);
    Json json = {{"number", frame.item}};
    json.update(place_json(frame.function, cursor_.item().instruction.address));
    if (frame.is_return) json["returned_to"] = true;
    if (frame.tail_called) json["tail_called"] = true;
    return json;
  }

  Json place_json(const Function* function, Address address) {
    Json json = {{"address", json_address(address)}};
    if (!function->name.empty()) json["function"] = function->name;
    if (!function->module.empty()) json["module"] = function->module;
    if (auto line = view_.symbols->line_at(address)) {
      json["file"] = line->file;
      json["line"] = line->line;
    }
    return json;
  }

  const HistoryView& view_;
  const Options& options_;
  AnswerPrinter& printer_;
  HistoryCursor cursor_;
};

Result<void> print_last(const HistoryView& view, const std::vector<std::uint64_t>& hits,
                        const Options& options, AnswerPrinter& printer) {
  if (hits.empty()) return {};
  Result<CallHistory> calls =
      calls_to_anchor(*view.history, *view.symbols, hits.front(), view.stack);
  if (!calls) return fail(std::move(calls.error()));
  PathPrinter paths(view, options, printer);
  for (std::size_t i = hits.size(); i-- != 0;)
    if (calls->holding(hits[i])) paths.print(*calls, hits[i]);
  return {};
}

Result<int> show_last(const Options& options, const Invocation& invocation) {
  Result<Wanted> wanted = wanted_place(options.place);
  if (!wanted) return fail(std::move(wanted.error()));
  AnswerPrinter printer("tailtrace.last/1", "hits", options.question, invocation.out);
  bool any = false;
  Result<std::uint64_t> gaps = each_thread(
      options.question, invocation.err, [&](HistoryView& view, bool several) -> Result<void> {
        Result<Range> range = asked_range(options.question, *view.history);
        if (!range) return fail(std::move(range.error()));
        auto hits = newest_hits(view, *range, *wanted, options.question.limit);
        any = any || !hits.empty();
        if (hits.empty() && !printer.is_json()) return {};
        printer.begin(view, several);
        Result<void> printed = print_last(view, hits, options, printer);
        printer.end();
        return printed;
      });
  if (!gaps) return fail(std::move(gaps.error()));
  printer.finish();
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
      .usage = "[OPTIONS] PATH LOCATION",
      .examples =
          {
              {"tailtrace last SESSION free", "who called it last"},
              {"tailtrace last --limit=3 SESSION worker.cc:88", "the newest three times"},
              {"tailtrace last --inside SESSION parse", "the newest instruction of a function"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<Options>();
        add_path(app, options->question.shared.path);
        add_place_options(app, options->place);
        app.add_option("--frames", options->frames, "show the innermost N calls")->type_name("N");
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
