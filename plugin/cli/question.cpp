#include "plugin/cli/question.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "decoder/symbols/missing_place.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/long_work.h"

namespace tailtrace {

using OrderedJson = nlohmann::ordered_json;

void add_question_options(CLI::App& app, QuestionOptions& options, const std::string& limit_help) {
  app.add_option("--thread", options.shared.thread, "this one only; all if nothing is said")
      ->type_name(kThreadWord);
  app.add_option("--range", options.shared.range, std::string("of these items only: ") + kRangeHelp)
      ->type_name("RANGE");
  add_count(app, "--limit", options.limit, limit_help);
  add_thread_options(app, options.shared);
}

void add_place_options(CLI::App& app, PlaceOptions& options) {
  app.add_option("LOCATION", options.location, "FUNCTION, FILE:LINE, *ADDRESS or MODULE+OFFSET")
      ->required();
  app.add_flag("--inside", options.inside, "every instruction of it, not only its first");
}

Result<Wanted> wanted_place(const PlaceOptions& options) {
  Result<Location> location = parse_location(options.location);
  if (!location) return fail(std::move(location.error()));
  Wanted wanted;
  wanted.location = std::move(*location);
  wanted.entries = !options.inside;
  return wanted;
}

AnswerPrinter::AnswerPrinter(std::string_view schema, std::string_view list,
                             const QuestionOptions& options, std::FILE* out)
    : schema_(schema),
      list_(list),
      path_(options.shared.path),
      output_(*options.shared.output),
      out_(out),
      threads_(std::make_unique<OrderedJson>(OrderedJson::array())),
      head_(std::make_unique<OrderedJson>()) {}

AnswerPrinter::~AnswerPrinter() = default;

void AnswerPrinter::begin(const HistoryView& view, bool several) {
  *head_ = view_json(view);
  if (view.history->is_abandoned()) (*head_)["interrupted"] = true;
  head_printed_ = false;
  if (!is_json() && several) line(fmt::format("thread {}", thread_text(view.thread)));
}

void AnswerPrinter::add(const OrderedJson& members) { head_->update(members); }

void AnswerPrinter::print_head() {
  wipe_progress();
  if (!head_printed_) print_json(out_, schema_, *head_, JsonForm::kLines);
  head_printed_ = true;
}

void AnswerPrinter::add_object(std::string_view object) {
  if (output_.json == JsonForm::kLines) {
    print_head();
    fmt::print(out_, "{}\n", object);
  } else {
    (*head_)[list_].push_back(OrderedJson::parse(object));
  }
}

void AnswerPrinter::line(std::string_view text) {
  wipe_progress();
  print_line(text, output_.use_color(out_), out_);
}

void AnswerPrinter::end() {
  if (output_.json == JsonForm::kLines) print_head();
  if (output_.json != JsonForm::kDocument) return;
  if (!list_.empty() && !head_->contains(list_)) (*head_)[list_] = OrderedJson::array();
  if (LongWork::interrupted()) (*head_)["interrupted"] = true;
  head_->erase("path");
  threads_->push_back(std::move(*head_));
}

void AnswerPrinter::finish() {
  if (output_.json != JsonForm::kDocument) return;
  print_json(out_, schema_, {{"path", path_}, {"threads", std::move(*threads_)}}, output_.json);
}

bool AnswerPrinter::goes_on() {
  left_out_ = left_out_ || LongWork::interrupted();
  return !left_out_ && std::ferror(out_) == 0;
}

LineSink AnswerPrinter::line_sink() {
  return [this](std::string_view text) {
    if (!goes_on()) return false;
    line(text);
    return true;
  };
}

LineSink AnswerPrinter::object_sink() {
  return [this](std::string_view object) {
    if (!goes_on()) return false;
    add_object(object);
    return true;
  };
}

Result<std::uint64_t> each_thread(const QuestionOptions& options, std::FILE* err,
                                  const std::function<Result<void>(HistoryView&, bool)>& ask,
                                  const AnswerPrinter* printer) {
  Result<std::vector<ThreadSource>> threads =
      asked_threads(options.shared.path, options.shared.thread);
  if (!threads) return fail(std::move(threads.error()));
  Result<ReadingSettings> settings = settings_of(options.shared);
  if (!settings) return fail(std::move(settings.error()));
  Answering answering(err);
  answering.watch(*settings);
  std::uint64_t gaps = 0;
  std::set<std::string> said;  // what concerns a whole process is said once
  for (const ThreadSource& thread : *threads) {
    auto say = [&](const std::string& problem) {
      if (!said.insert(problem).second) return;
      wipe_progress();
      fmt::print(err, "{}\n", problem);
    };
    Result<HistoryView> view = open_view_of(thread, options.shared.records, say, *settings);
    if (!view) return fail(std::move(view.error()));
    gaps += view->history->gaps();
    if (Result<void> asked = ask(*view, threads->size() > 1); !asked)
      return fail(std::move(asked.error()));
    const bool is_whole = &thread == &threads->back() && !view->history->is_abandoned() &&
                          (printer == nullptr || !printer->left_out());
    if (is_whole || !answering.interrupted()) continue;
    wipe_progress();
    fmt::print(err, "{}\n", answering.interruption_text());
    break;
  }
  return gaps;
}

void AskedProcesses::add(const HistoryView& view) {
  const bool is_known = !symbols_.empty() && symbols_.back() == view.symbols;
  if (!is_known && symbols_.size() <= kMostLookedAt) symbols_.push_back(view.symbols);
  executed_ = executed_ || view.history->resolve(-1);
  interrupted_ = interrupted_ || view.history->is_abandoned();
}

std::optional<Error> AskedProcesses::missing(const Wanted& wanted) const {
  if (interrupted_)
    return Error{ErrorCode::kNegative,
                 (wanted.location ? location_text(*wanted.location) : "what is asked for") +
                     " was not found yet",
                 "only a part of the history was looked at", "", ""};
  if (symbols_.size() > kMostLookedAt || !wanted.location) return std::nullopt;
  if (!executed_)
    return Error{ErrorCode::kNegative, location_text(*wanted.location) + " was not reached",
                 "nothing was executed while it was recorded",
                 "tailtrace last shows where it stands", ""};
  LongWork work(stderr);
  auto goes_on = [&work] {
    work.say([] { return "it was not reached: looking for a name like that"; });
    return !LongWork::interrupted();
  };
  std::optional<Error> missing;
  for (const auto& symbols : symbols_) {
    missing = missing_place(*wanted.location, wanted.entries, *symbols, goes_on);
    if (!missing) break;
  }
  return missing;
}

Result<Range> asked_range(const QuestionOptions& options, const History& history) {
  if (options.shared.range.empty()) return Range{1, history.size()};
  Result<Range> range = parse_range(options.shared.range, {history.size(), history.size(), {}});
  // A thread may be too short for what is asked of all.
  if (!range && range.error().code == ErrorCode::kNegative) return Range{};
  return range;
}

Result<int> question_status(bool yes, std::uint64_t gaps, const QuestionOptions& options) {
  if (options.shared.strict && gaps != 0)
    return fail(ErrorCode::kGaps, "the histories are not whole", fmt::format("{} gap(s)", gaps));
  return yes ? kExitDone : kExitNegative;
}

}  // namespace tailtrace
