// HistoryAnswers: one thread's history as it stood, and what `monitor tailtrace` commands say of
// it.
//
// It may be the newest part of the history only. Whoever asks for more than that has to make it of
// all.
//
// Threading: one thread at a time, but for abandon().
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/history/calls/call_path.h"
#include "decoder/history/calls/calls.h"
#include "decoder/history/history.h"
#include "decoder/history/listing.h"
#include "decoder/history/range.h"
#include "plugin/server/monitor/command_words.h"
#include "plugin/server/recording/snapshot_cut.h"

namespace tailtrace {

class HistoryAnswers {
 public:
  struct Facts {
    std::string_view engine;
    Position head;  // grows as the thread goes on
    Part part = Part::kAll;
  };
  HistoryAnswers(std::shared_ptr<const ThreadSnapshot> snapshot,
                 std::unique_ptr<Symbolizer> symbols, const Facts& facts);

  // The text to show, which begins with "error: " where the command cannot be fulfilled; nothing
  // when it takes more of the history than there is here.
  using Text = std::optional<std::string>;
  struct Command {
    std::string_view name;
    Text (HistoryAnswers::*run)(CommandWords);
    Part least = Part::kAll;   // what it can be tried with
    bool needs_stack = false;  // set_stack()
  };
  // Null: there is none.
  static const Command* command_named(std::string_view name);
  Text answer(const Command& command, std::string_view words) {
    return (this->*command.run)({words});
  }

  // What follows the range that another one showed last, of the same thread as it stands, follows
  // here.
  void go_on_from(const HistoryAnswers& newest_part) {
    shown_items_ = newest_part.shown_items_;
    shown_calls_ = newest_part.shown_calls_;
  }

  // That of the thread as it stands (thread_stack.h).
  void set_stack(std::vector<Address> stack) { stack_ = std::move(stack); }
  bool has_stack() const { return stack_.has_value(); }

  const Facts& facts() const { return facts_; }

  // What works on an answer ends soon, and there will be no more.
  void abandon() { stop_.request_stop(); }
  bool is_abandoned() const { return stop_.stop_requested(); }

 private:
  // POSITION LIMIT
  struct Asked {
    std::int64_t position = 0;
    std::uint64_t number = 0;  // of the item there
    std::uint64_t limit = 0;
  };
  // The lines of a file that other programs read, of the items from one to another, as JSON
  // strings.
  struct Exported {
    std::string format;
    std::int64_t first = 0, last = 0;
    std::vector<std::string> lines;

    bool is_same(const Exported& other) const {
      return format == other.format && first == other.first && last == other.last;
    }
  };
  // Nothing where the words do not name an item; 0, where that is asked for as well, is where the
  // thread stands, and the number behind the newest.
  std::optional<Asked> item_asked_for(CommandWords words, bool or_where_it_stands = false) const;

  Text instruction_history(CommandWords words);
  Text function_call_history(CommandWords words);
  Text items(CommandWords words);
  Text records(CommandWords words);
  Text calls(CommandWords words);
  Text call_tree(CommandWords words);
  Text whole_calls(CommandWords words);
  Text exported(CommandWords words);
  Text loops(CommandWords words);
  Text counts(CommandWords words);
  Text find(CommandWords words);
  Text hits(CommandWords words);
  Text why(CommandWords words);
  Text stack(CommandWords words);
  Text frames(CommandWords words);

  std::string export_lines(Exported& asked, Range range);

  bool is_all() const { return facts_.part == Part::kAll; }
  // Whether it is all, or has the item that is so far from the newest one.
  bool has(std::int64_t first) const;
  bool has_range(std::string_view text) const;
  Range items_of(std::int64_t first, std::uint64_t count, std::uint64_t most) const;

  // As many calls of the newest items as can be kept. Errors: as CallHistory::make.
  Result<const CallHistory*> all_calls();
  // The newest calls, so many segments of them that it is enough, or all there are; null where the
  // newest part of the history does not hold so many. Errors: as CallHistory::make.
  using EnoughCalls = std::function<bool(std::uint64_t segments)>;
  Result<const CallHistory*> newest_calls(const EnoughCalls& enough);

  // Those that have the callers of an item. REQUIRES: has_stack(). Errors: as CallHistory::make.
  Result<const CallHistory*> calls_to_anchor(std::uint64_t item);
  CallPath path_among(const CallHistory& calls, const Asked& asked);

  // The line that all others come behind; `more` is put into it, and with `counted` the size.
  std::string head_line(std::string_view schema, bool counted,
                        const nlohmann::ordered_json& more = {}) const;

  Facts facts_;
  bool is_long_;  // long_history.h; of the whole, too
  std::stop_source stop_;
  std::unique_ptr<const History> history_;
  std::unique_ptr<Symbolizer> symbols_;
  // Null, nothing: not asked for yet.
  std::unique_ptr<const CallHistory> calls_;
  std::unique_ptr<const CallHistory> newest_calls_;
  std::unique_ptr<const CallHistory> older_calls_;
  Exported exported_;  // last
  std::optional<std::vector<Address>> stack_;
  std::optional<Range> shown_items_, shown_calls_;  // last
};

}  // namespace tailtrace
