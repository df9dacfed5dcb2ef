#include "plugin/cli/history_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/text.h"
#include "decoder/symbols/debuginfod.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/generated_files.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/units.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

void say(std::FILE* err, const std::string& text) {
  wipe_progress();
  fmt::print(err, "{}\n", text);
}

}  // namespace

void add_path(CLI::App& app, std::string& path) {
  app.add_option("PATH", path,
                 "a session's or process's folder, a bundle, a record stream, a perf.data file")
      ->required();
}

void add_reading_options(CLI::App& app, HistoryOptions& options) {
  add_count(app, "--records", options.records, "look at no more than the newest N records");
  app.add_option("--cache", options.cache, "memory for what was decoded (256MiB)")
      ->type_name("SIZE");
  app.add_flag("--debuginfod", options.debuginfod,
               "fetch debug information that is not installed from $DEBUGINFOD_URLS");
}

Result<ReadingSettings> settings_of(const HistoryOptions& options) {
  Result<std::uint64_t> cache_bytes = parse_size(options.cache);
  if (!cache_bytes) return fail(std::move(cache_bytes.error()));
  ReadingSettings settings;
  settings.cache_bytes = *cache_bytes;
  if (!options.debuginfod) return settings;
  Result<DebugFetch> fetch = ask_debuginfod();
  if (!fetch) return fail(std::move(fetch.error()));
  settings.fetch = std::move(*fetch);
  return settings;
}

void add_thread_options(CLI::App& app, HistoryOptions& options) {
  add_reading_options(app, options);
  app.add_flag("--forward", options.forward, "count from 1, the oldest, as GDB does");
  app.add_flag("--strict", options.strict, "exit with status 6 when the history has gaps");
  options.output = add_output_options(app);
}

void add_history_options(CLI::App& app, HistoryOptions& options) {
  add_path(app, options.path);
  app.add_option("RANGE", options.range, kRangeHelp);
  app.add_option("--thread", options.thread,
                 "which one; the first if nothing is said, in the program that it executed last")
      ->type_name(kThreadWord);
  add_thread_options(app, options);
}

Result<std::vector<std::string>> take_range(std::vector<std::string>& args) {
  const auto is_range = [](const std::string& arg) {
    return arg == "-" || (arg.size() > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9' &&
                          arg.find_first_not_of("0123456789,+-") == arg.npos);
  };
  std::vector<std::string> ranges;
  std::erase_if(args, [&](const std::string& arg) {
    if (!is_range(arg)) return false;
    ranges.push_back(arg);
    return true;
  });
  if (ranges.size() > 1)
    return fail(ErrorCode::kUsage, "there is more than one range", ranges[0] + " and " + ranges[1]);
  return ranges;
}

bool is_near_newest(const HistoryOptions& options) {
  const std::string_view range = options.range;
  const std::size_t end = std::min(range.size(), range.find(',')) + 1;
  const bool counts_back = range.empty() || range.front() == '-';
  const bool ends_so = end >= range.size() || range[end] == '-' || range[end] == '+';
  return options.output->json == JsonForm::kNone && !options.forward && !options.strict &&
         counts_back && ends_so;
}

Result<HistoryView> open_view(const HistoryOptions& options, std::FILE* err,
                              HistorySettings::Numbers numbers, Answering* answering) {
  Result<std::vector<ThreadSource>> threads = recorded_threads(options.path);
  if (!threads) return fail(std::move(threads.error()));
  Result<ThreadSource> thread = pick_thread(*threads, options.thread);
  if (!thread) return fail(std::move(thread.error()));
  if (threads->size() > 1 && options.thread.empty())
    say(err, fmt::format("thread {} of {}; tailtrace info lists them, --thread=TID picks one",
                         thread_text(*thread), threads->size()));
  Result<ReadingSettings> settings = settings_of(options);
  if (!settings) return fail(std::move(settings.error()));
  settings->numbers = numbers;
  if (answering != nullptr) answering->watch(*settings);
  return open_view_of(
      std::move(*thread), options.records, [err](const std::string& text) { say(err, text); },
      *settings);
}

namespace {

std::shared_ptr<const History> make_history(const OpenedThread& opened, HistorySettings settings,
                                            const std::function<void(const std::string&)>& say) {
  Counting counting(stderr);
  settings.watch = counting.watch();
  auto history = std::make_shared<const History>(opened.frame, opened.source, settings);
  if (counting.interrupted() && settings.numbers == HistorySettings::Numbers::kFromOldest)
    say(fmt::format("interrupted: only the newest {} items were read", history->size()));
  return history;
}

// Threads of a process have the same names, unless these follow from the code that each has seen.
std::shared_ptr<ProcessSymbols> symbols_of(const OpenedThread& opened,
                                           const std::function<void(const std::string&)>& say,
                                           const ReadingSettings& settings) {
  LastSymbols& last = *settings.last;
  std::vector<Mapping> mappings = mappings_of(opened.frame.thread.pid, opened.maps);
  const bool generates = !opened.perf_map.empty() || !jit_dumps_of(mappings).empty();
  const bool is_same =
      last.symbols && last.maps == opened.maps && last.former_maps == opened.frame.former_maps &&
      last.perf_map == opened.perf_map && (!generates || last.code == opened.frame.code);
  if (is_same) return last.symbols;
  auto symbols =
      std::make_shared<ProcessSymbols>(std::move(mappings), opened.perf_map,
                                       [say](const Error& problem) { say(problem.to_string()); });
  symbols->know_history(opened.frame);
  symbols->fetch_debug_files_by(settings.fetch);
  last = {opened.maps, opened.frame.former_maps, opened.perf_map, opened.frame.code, symbols};
  return symbols;
}

}  // namespace

Result<HistoryView> open_view_of(ThreadSource thread, std::uint64_t limit_records,
                                 const std::function<void(const std::string&)>& say,
                                 const ReadingSettings& settings) {
  Result<OpenedThread> opened = open_recorded(thread, limit_records);
  if (!opened) return fail(std::move(opened.error()));
  for (const Error& problem : opened->problems) say(problem.to_string());
  HistoryView view;
  view.thread = std::move(thread);
  view.history = make_history(*opened, settings, say);
  view.symbols = symbols_of(*opened, say, settings);
  view.stack = std::move(opened->stack);
  return view;
}

OrderedJson view_json(const HistoryView& view) {
  const ThreadFrame& frame = view.history->frame();
  OrderedJson json = {{"path", view.thread.path}};
  json.update(thread_json(view.thread));
  json.update({{"engine", frame.engine},
               {"complete", frame.complete},
               {"size", view.history->size()},
               {"gaps", view.history->gaps()}});
  return json;
}

std::uint64_t overwritten_records(const ThreadFrame& frame) {
  return frame.complete ? 0 : frame.first.value;
}

std::string overwritten_text(std::uint64_t records) {
  return records == 0 ? "" : fmt::format("; {} older records were overwritten", records);
}

void print_line(std::string_view line, bool color, std::FILE* out) {
  constexpr std::string_view kBold = "\33[1m", kRed = "\33[31m", kPlain = "\33[0m";
  std::string_view mark;
  if (color && line.find("-- ") != std::string_view::npos) mark = kRed;
  if (color && mark.empty() && !line.starts_with("    ")) mark = kBold;
  fmt::print(out, "{}{}{}\n", mark, printable(line), mark.empty() ? "" : kPlain);
}

void print_lines(const std::function<void(const LineSink&)>& lister, const OutputOptions& output,
                 std::FILE* out) {
  const bool color = output.use_color(out);
  Printing printing(out);
  lister([&](std::string_view line) {
    if (!printing.goes_on()) return false;
    print_line(line, color, out);
    return true;
  });
}

Error document_too_long() {
  return {ErrorCode::kUsage, "cannot print so much as one JSON document",
          fmt::format("it would have more than {} items", kMaxDocumentItems),
          "ask for a smaller range, or use --json=lines", ""};
}

Result<void> print_objects(const std::function<void(const LineSink&)>& lister,
                           std::string_view schema, const OrderedJson& head, const char* key,
                           const OutputOptions& output, std::FILE* out) {
  Printing printing(out);
  if (output.json == JsonForm::kLines) {
    print_json(out, schema, head, output.json);
    lister([&](std::string_view line) {
      if (!printing.goes_on()) return false;
      fmt::print(out, "{}\n", line);
      return true;
    });
    return {};
  }
  OrderedJson document = head;
  OrderedJson& items = document[key] = OrderedJson::array();
  lister([&](std::string_view line) {
    if (!printing.goes_on()) return false;
    items.push_back(OrderedJson::parse(line));
    return items.size() <= kMaxDocumentItems;
  });
  if (printing.interrupted()) document["interrupted"] = true;
  if (items.size() > kMaxDocumentItems) return fail(document_too_long());
  print_json(out, schema, document, output.json);
  return {};
}

Result<int> view_status(const HistoryView& view, const HistoryOptions& options) {
  if (!options.strict || view.history->gaps() == 0) return kExitDone;
  return fail(ErrorCode::kGaps, "the history is not whole",
              fmt::format("it has {} gap(s)", view.history->gaps()));
}

}  // namespace tailtrace
