#include "plugin/cli/merged_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "decoder/base/json_text.h"
#include "decoder/history/merged.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Views = std::vector<HistoryView>;

constexpr std::uint64_t kMostItems = std::uint64_t{1} << 62;
// In one JSON object: longer stretches are several.
constexpr std::uint64_t kMaxObjectItems = 1 << 16;

Result<Views> open_views(const HistoryOptions& options, std::FILE* err,
                         const std::shared_ptr<std::set<std::string>>& said) {
  Result<std::vector<ThreadSource>> threads = asked_threads(options.path, options.thread);
  if (!threads) return fail(std::move(threads.error()));
  Result<ReadingSettings> settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  using Numbers = HistorySettings::Numbers;
  settings->numbers = options.forward ? Numbers::kFromOldest : Numbers::kFromNewest;
  auto say = [err, said](const std::string& problem) {
    if (said->insert(problem).second) fmt::print(err, "{}\n", problem);
  };
  Views views;
  for (ThreadSource& thread : *threads) {
    Result<HistoryView> view = open_view_of(std::move(thread), options.records, say, *settings);
    if (!view) return fail(std::move(view.error()));
    views.push_back(std::move(*view));
  }
  return views;
}

Result<std::uint64_t> items_asked_for(const std::string& text, std::uint64_t page) {
  Result<Range> range = parse_range(text, {kMostItems, page, {}});
  if (!range) return fail(std::move(range.error()));
  if (range->last == kMostItems) return range->size();
  return fail(ErrorCode::kUsage, fmt::format("cannot show the range `{}` of all threads", text),
              "items of several threads have no numbers in common",
              "-N,-1 for the newest N, or all");
}

std::string header(const HistoryView& view, const TimedStretch& stretch) {
  std::string text = fmt::format("thread {}  ", thread_text(view.thread));
  text += stretch.begin == 0 ? "time not known" : fmt::format("time {}", stretch.begin);
  if (stretch.overlaps) text += "  (may overlap what is above)";
  return text;
}

void list_text(const Views& views, const std::vector<TimedStretch>& stretches,
               const ListingOptions& listing, const LineSink& sink) {
  bool more = true;
  for (const TimedStretch& stretch : stretches) {
    const HistoryView& view = views[stretch.thread];
    more = more && sink(header(view, stretch));
    if (!more) return;
    list_instructions(*view.history, *view.symbols, stretch.items, listing,
                      [&](std::string_view line) { return more = sink("  " + std::string(line)); });
  }
}

std::string json_of(const HistoryView& view, const TimedStretch& stretch, Range part,
                    JsonNumbers numbers) {
  OrderedJson object = thread_json(view.thread);
  if (stretch.begin != 0) object["begin"] = stretch.begin;
  if (stretch.end != 0) object["end"] = stretch.end;
  object["overlaps"] = stretch.overlaps;
  OrderedJson& items = object["items"] = OrderedJson::array();
  list_instructions_json(
      *view.history, *view.symbols, part,
      [&](std::string_view line) {
        items.push_back(OrderedJson::parse(line));
        return true;
      },
      numbers);
  return json_text(object);
}

void list_json(const Views& views, const std::vector<TimedStretch>& stretches, JsonNumbers numbers,
               const LineSink& sink) {
  for (const TimedStretch& stretch : stretches)
    for (Range part = stretch.items; part.first <= stretch.items.last; part.first = part.last + 1) {
      part.last = std::min(stretch.items.last, part.first + kMaxObjectItems - 1);
      if (!sink(json_of(views[stretch.thread], stretch, part, numbers))) return;
    }
}

std::uint64_t items_of(const std::vector<TimedStretch>& stretches) {
  std::uint64_t sum = 0;
  for (const TimedStretch& stretch : stretches) sum += stretch.items.size();
  return sum;
}

Result<int> status(const Views& views, const HistoryOptions& options) {
  for (const HistoryView& view : views)
    if (auto code = view_status(view, options); !code) return code;
  return kExitDone;
}

}  // namespace

Result<int> show_merged(const HistoryOptions& options, const ListingOptions& listing,
                        std::uint64_t page, const Invocation& invocation) {
  Result<std::uint64_t> items = items_asked_for(options.range, page);
  if (!items) return fail(std::move(items.error()));
  Result<Views> views =
      open_views(options, invocation.err, std::make_shared<std::set<std::string>>());
  if (!views) return fail(std::move(views.error()));
  std::vector<const History*> histories;
  for (const HistoryView& view : *views) histories.push_back(view.history.get());
  const std::vector<TimedStretch> stretches = newest_stretches(histories, *items);
  if (stretches.empty())
    return fail(ErrorCode::kNegative, "there is nothing to show", "all histories are empty");
  const OutputOptions& output = *options.output;
  if (output.json == JsonForm::kNone) {
    print_lines([&](const LineSink& sink) { list_text(*views, stretches, listing, sink); }, output,
                invocation.out);
    return status(*views, options);
  }
  if (output.json == JsonForm::kDocument && items_of(stretches) > kMaxDocumentItems)
    return fail(document_too_long());
  const JsonNumbers numbers = options.forward ? JsonNumbers::kBoth : JsonNumbers::kFromNewest;
  Result<void> printed = print_objects(
      [&](const LineSink& sink) { list_json(*views, stretches, numbers, sink); },
      "tailtrace.merged/1", {{"path", options.path}}, "stretches", output, invocation.out);
  if (!printed) return fail(std::move(printed.error()));
  return status(*views, options);
}

}  // namespace tailtrace
