// Question: what the commands share that ask something of every thread of a recording: their
// options, the threads opened one after the other, and the shape of the answer.
//
// As JSON an answer is a document with a list "threads", each beginning as view_json has it; as
// JSON lines each thread is a line, followed by those of its parts.
//
// Threading: one thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>

#include "decoder/history/queries/find.h"
#include "plugin/cli/history_view.h"

namespace tailtrace {

struct QuestionOptions {
  HistoryOptions shared;
  std::uint64_t limit = 50;
};

// Adds --thread, --range, --limit and what add_thread_options adds.
void add_question_options(CLI::App& app, QuestionOptions& options,
                          const std::string& limit_help = "show the newest N of each thread");

// A place in the code that a command must be told.
struct PlaceOptions {
  std::string location;
  bool inside = false;
};

// Adds LOCATION and --inside.
void add_place_options(CLI::App& app, PlaceOptions& options);
// Errors: as parse_location.
Result<Wanted> wanted_place(const PlaceOptions& options);

// One thread's answer: lines for people, or the members of a JSON object and the objects of a list
// in it.
class AnswerPrinter {
 public:
  // `schema` is the document's, `list` the name of the list in each thread; empty: there is none.
  AnswerPrinter(std::string_view schema, std::string_view list, const QuestionOptions& options,
                std::FILE* out);
  ~AnswerPrinter();

  bool is_json() const { return output_.json != JsonForm::kNone; }

  // Begins a thread. `several` of them need a header each.
  void begin(const HistoryView& view, bool several);
  // More members of a thread, before any object of its list.
  void add(const nlohmann::ordered_json& members);
  // An object of its list. REQUIRES: is_json().
  void add_object(std::string_view object);
  // A line for people. REQUIRES: not is_json().
  void line(std::string_view text);
  // Ends a thread.
  void end();
  // Ends the document. Errors: none of ours; a full disk shows when the output is closed.
  void finish();

  // Take nothing more once Ctrl-C was pressed.
  LineSink line_sink();
  LineSink object_sink();
  // So that one of them has refused a line.
  bool left_out() const { return left_out_; }

 private:
  void print_head();
  bool goes_on();

  std::string schema_, list_;
  std::string path_;
  const OutputOptions& output_;
  std::FILE* out_;
  std::unique_ptr<nlohmann::ordered_json> threads_, head_;
  bool head_printed_ = false;
  bool left_out_ = false;
};

// Opens the threads that are asked for, all if none is named, one after the other, and hands each
// to `ask`; Ctrl-C abandons its history, and all that come after it. Says on `err` how far it is,
// that it was interrupted, where that left out anything, and what cannot be read, once. `printer`
// is what `ask` prints with. The value is how many gaps they have. Errors: as recorded_threads,
// pick_thread, open_recorded and `ask`.
Result<std::uint64_t> each_thread(const QuestionOptions& options, std::FILE* err,
                                  const std::function<Result<void>(HistoryView&, bool)>& ask,
                                  const AnswerPrinter* printer = nullptr);

// The processes whose threads were asked: when none was at a place, there may be no such place, or
// nothing was executed at all, or Ctrl-C ended the looking.
class AskedProcesses {
 public:
  // Of a thread that was looked at.
  void add(const HistoryView& view);

  // Why nothing was found, as missing_place() says, of all of them; nothing when they are too many,
  // or no place is wanted.
  std::optional<Error> missing(const Wanted& wanted) const;

 private:
  static constexpr std::size_t kMostLookedAt = 16;
  std::vector<std::shared_ptr<ProcessSymbols>> symbols_;
  bool executed_ = false;
  bool interrupted_ = false;
};

// The items that --range means; all of them when it is not given, none of an empty history.
Result<Range> asked_range(const QuestionOptions& options, const History& history);

// The exit status: kGaps is an error with --strict.
Result<int> question_status(bool yes, std::uint64_t gaps, const QuestionOptions& options);

}  // namespace tailtrace
