#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "decoder/history/queries/diff.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/history_view.h"
#include "plugin/cli/long_work.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Of one side of a difference.
constexpr std::size_t kMostLoops = 5;

struct DiffCommandOptions {
  HistoryOptions here, there;
  std::string module;
  std::uint64_t limit = 20;
};

struct Opened {
  HistoryView view;
  Range items;
};

Result<Opened> open_side(const HistoryOptions& options, const std::string& range, std::FILE* err,
                         Answering& answering) {
  Result<HistoryView> view = open_view(options, err, {}, &answering);
  if (!view) return fail(std::move(view.error()));
  Range items{1, view->history->size()};
  if (!range.empty()) {
    Result<Range> parsed = parse_range(range, {items.last, items.last, {}});
    if (!parsed) return fail(std::move(parsed.error()));
    items = *parsed;
  }
  return Opened{std::move(*view), items};
}

class DiffPrinter {
 public:
  DiffPrinter(const Opened& here, const Opened& there, bool forward)
      : here_(here), there_(there), forward_(forward) {}

  void list(const HistoryDiff& diff, const LineSink& sink) {
    for (const Divergence& divergence : diff.divergences) {
      std::string name = divergence.function.empty() ? "(no symbol)" : divergence.function;
      bool calls = divergence.what == Divergence::What::kCalls;
      sink(fmt::format("  {}  {}", name, calls ? "other calls" : "another way"));
      side(here_, "here ", divergence.fork_here, divergence.here, sink);
      side(there_, "there", divergence.fork_there, divergence.there, sink);
    }
    if (diff.more) sink("  there are more differences: --limit shows more of them");
    if (diff.divergences.empty() && !diff.more)
      sink(fmt::format("  no difference in {} calls", diff.same_calls));
  }

  void list_json(const HistoryDiff& diff, const LineSink& sink) {
    for (const Divergence& divergence : diff.divergences) {
      bool calls = divergence.what == Divergence::What::kCalls;
      OrderedJson json = {{"what", calls ? "calls" : "path"}};
      if (!divergence.function.empty()) json["function"] = divergence.function;
      json["here"] = side_json(here_, divergence.fork_here, divergence.here);
      json["there"] = side_json(there_, divergence.fork_there, divergence.there);
      sink(json_text(json));
    }
  }

 private:
  std::string position(const Opened& side, std::uint64_t item) const {
    if (forward_) return fmt::format("{}", item);
    return fmt::format("-{}", side.view.history->size() - item + 1);
  }

  // An item as the listing of instructions has it, without its header.
  std::string item_text(const Opened& side, std::uint64_t item) const {
    std::string text, where;
    ListingOptions options;
    options.from_newest = !forward_;
    HistoryCursor cursor(*side.view.history);
    cursor.seek(item);
    if (!cursor.item().is_gap)
      where = "  " + where_text(*side.view.symbols, cursor.item().instruction.address,
                                cursor.item().epoch);
    list_items(*side.view.history, *side.view.symbols, std::vector<std::uint64_t>{item}, options,
               [&](std::string_view line) {
                 text = line;
                 return true;
               });
    text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
    return text + where;
  }

  void side(const Opened& side, const char* name, std::uint64_t fork, Range items,
            const LineSink& sink) const {
    if (fork != 0) sink(fmt::format("    {}  behind  {}", name, item_text(side, fork)));
    if (items.size() == 0) {
      sink(fmt::format("    {}  nothing", name));
      return;
    }
    sink(fmt::format("    {}          {}", name, item_text(side, items.first)));
    if (items.size() > 1)
      sink(fmt::format("    {}          {} instructions: [{},{}]", name, items.size(),
                       position(side, items.first), position(side, items.last)));
    for (const Loop& loop : loops_of(side, items))
      sink(fmt::format("    {}          {}", name,
                       loop_text(*side.view.history, *side.view.symbols, loop, !forward_)));
  }

  // The first ones: they are what made it so long.
  static std::vector<Loop> loops_of(const Opened& side, Range items) {
    std::vector<Loop> loops = find_loops(*side.view.history, items);
    if (loops.size() > kMostLoops) loops.resize(kMostLoops);
    return loops;
  }

  OrderedJson side_json(const Opened& side, std::uint64_t fork, Range items) const {
    OrderedJson json = OrderedJson::object();
    if (fork != 0) json["fork"] = item_json(side, fork);
    if (items.size() == 0) return json;
    json["first"] = items.first;
    json["last"] = items.last;
    json["item"] = item_json(side, items.first);
    OrderedJson loops = OrderedJson::array();
    list_loops_json(*side.view.history, items, [&](std::string_view object) {
      loops.push_back(OrderedJson::parse(object));
      return loops.size() < kMostLoops;
    });
    if (!loops.empty()) json["loops"] = std::move(loops);
    return json;
  }

  static OrderedJson item_json(const Opened& side, std::uint64_t item) {
    OrderedJson json;
    list_items_json(*side.view.history, *side.view.symbols, std::vector<std::uint64_t>{item},
                    [&](std::string_view object) {
                      json = OrderedJson::parse(object);
                      return true;
                    });
    return json;
  }

  const Opened& here_;
  const Opened& there_;
  bool forward_;
};

Result<int> print_diff(const Opened& here, const Opened& there, const HistoryDiff& diff,
                       const DiffCommandOptions& options, const Invocation& invocation) {
  const OutputOptions& output = *options.here.output;
  DiffPrinter printer(here, there, options.here.forward);
  if (output.json == JsonForm::kNone) {
    print_lines([&](const LineSink& sink) { printer.list(diff, sink); }, output, invocation.out);
  } else {
    OrderedJson head = {{"here", view_json(here.view)}, {"there", view_json(there.view)}};
    head["here"]["calls"] = diff.calls_here;
    head["there"]["calls"] = diff.calls_there;
    head["same_calls"] = diff.same_calls;
    head["more"] = diff.more;
    Result<void> printed =
        print_objects([&](const LineSink& sink) { printer.list_json(diff, sink); },
                      "tailtrace.diff/1", head, "divergences", output, invocation.out);
    if (!printed) return fail(std::move(printed.error()));
  }
  for (const Opened* side : {&here, &there})
    if (Result<int> status = view_status(side->view, options.here); !status) return status;
  return diff.divergences.empty() && !diff.more ? kExitDone : kExitNegative;
}

Result<int> show_diff(const DiffCommandOptions& options, const Invocation& invocation) {
  Answering answering(invocation.err);
  Result<Opened> here = open_side(options.here, options.here.range, invocation.err, answering);
  if (!here) return fail(std::move(here.error()));
  HistoryOptions other = options.there;
  other.records = options.here.records;
  other.cache = options.here.cache;
  Result<Opened> there = open_side(other, options.here.range, invocation.err, answering);
  if (!there) return fail(std::move(there.error()));
  Result<HistoryDiff> diff = diff_histories(
      {*here->view.history, *here->view.symbols, here->items, options.module},
      {*there->view.history, *there->view.symbols, there->items, options.module}, options.limit);
  if (!diff) return fail(std::move(diff.error()));
  answering.finish();
  return print_diff(*here, *there, *diff, options, invocation);
}

}  // namespace

Command diff_command() {
  return {
      .name = "diff",
      .summary = "Show where two recordings went different ways",
      .usage = "[OPTIONS] PATH OTHER",
      .examples =
          {
              {"tailtrace diff GOOD BAD", "the first difference is on top"},
              {"tailtrace diff --module=server GOOD BAD", "in the program's own code only"},
              {"tailtrace diff --thread=12 --other-thread=15 DIR DIR", "two threads"},
          },
      .elsewhere = {"compare"},
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<DiffCommandOptions>();
        add_path(app, options->here.path);
        app.add_option("OTHER", options->there.path, "the other one")->required();
        app.add_option("--module", options->module, "compare code of this file only")
            ->type_name("FILE");
        app.add_option("--thread", options->here.thread, "of PATH; the first if nothing is said")
            ->type_name(kThreadWord);
        app.add_option("--other-thread", options->there.thread, "of OTHER")->type_name(kThreadWord);
        app.add_option("--range", options->here.range,
                       std::string("of these items of both only: ") + kRangeHelp)
            ->type_name("RANGE");
        add_count(app, "--limit", options->limit, "show the oldest N differences");
        add_thread_options(app, options->here);
        return [options](const Invocation& invocation) { return show_diff(*options, invocation); };
      },
      .take_program = {},
      .details =
          "Calls are aligned by name, and what was executed in each by instruction or, where the "
          "two are different builds, by source line; where something was loaded makes no "
          "difference. Behind a fork the branches agree up to the instruction that is shown. The "
          "exit status is 0 when nothing is different and 1 when something is.",
  };
}

}  // namespace tailtrace
