// MonitorHistory: `monitor tailtrace instruction-history` and its like, a thread's history for
// people and for scripts inside the debugger.
//
// The history is kept between commands, until the thread has moved. Names come from the files that
// the process has mapped, as this machine has them.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "decoder/history/calls.h"
#include "decoder/history/history.h"
#include "decoder/history/range.h"
#include "plugin/server/recorder.h"

namespace tailtrace {

class MonitorHistory {
 public:
  MonitorHistory(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  // Lines for the `monitor help` of it all.
  static std::string_view help();

  // The text to show; nothing when the command is none of these. A request that cannot be
  // fulfilled is answered with a text that begins with "error: ". Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

  // What is left to do for that text. It needs neither the server below nor the engine, so that
  // another thread may run it, as long as nothing else is asked for meanwhile. Here there is one
  // more command, `records`, whose answer is not to be shown: a line, and records as they are.
  using Work = std::function<std::string()>;
  Result<std::optional<Work>> prepare(std::string_view command);

  // That ends soon, and with it what it made. Whoever runs it may be at it.
  void abandon();

 private:
  // What was made last, and of what.
  struct Made {
    ThreadId thread;
    Position head;
    Address pc;
    bool is_whole = true;  // or the newest part only
    bool is_long = false;  // long_history.h; of the whole, too
    std::stop_source stop;
    std::unique_ptr<const History> history;
    std::unique_ptr<Symbolizer> symbols;
    // Null, nothing: not asked for yet.
    std::unique_ptr<const CallHistory> calls = nullptr;
    std::unique_ptr<const CallHistory> newest_calls = nullptr;
    std::uint64_t newest_calls_size = 0;  // so many, or all there are
    std::optional<std::vector<Address>> stack = {};
    std::optional<Range> shown_items = {}, shown_calls = {};  // last
  };
  // The words behind a command's name.
  struct Arguments {
    std::string_view rest;
    std::string_view word();
    // Sets `number`; false when the next word is none.
    template <class Number>
    bool number(Number& number);
    // FIRST, from 1 or back from -1, and COUNT.
    bool stretch(std::int64_t& first, std::uint64_t& count);
  };

  // POSITION LIMIT
  struct Asked {
    std::int64_t position = 0;
    std::uint64_t number = 0;  // of the item there
    std::uint64_t limit = 0;
  };
  // Nothing where the words do not name an item of made_.
  std::optional<Asked> item_asked_for(Arguments arguments) const;

  // Each runs one command over made_.
  std::string instruction_history(Arguments arguments);
  std::string function_call_history(Arguments arguments);
  std::string items(Arguments arguments);
  std::string records(Arguments arguments);
  std::string calls(Arguments arguments);
  std::string whole_calls(Arguments arguments);
  std::string loops(Arguments arguments);
  std::string counts(Arguments arguments);
  std::string find(Arguments arguments);
  std::string hits(Arguments arguments);
  std::string why(Arguments arguments);
  std::string stack(Arguments arguments);
  std::string frames(Arguments arguments);
  std::string newest_calls_json(std::int64_t first, std::uint64_t count);
  Range items_of(std::int64_t first, std::uint64_t count, std::uint64_t most) const;
  std::string head_line(std::string_view schema, bool count, std::string_view end = {},
                        std::optional<std::uint64_t> found = {}) const;
  // Makes made_->calls; false: `problem` says why there are none.
  bool make_calls(std::string& problem);

  // The thread that the last word names, which is taken off, or the selected one; none: `problem`
  // says why.
  Result<std::optional<ThreadId>> meant(std::string_view& words, std::string& problem);
  // Sets made_; to the newest part at least. False: `problem` says why there is none.
  Result<bool> make(ThreadId thread, bool whole, std::string& problem);
  // Whether made_ has what a command asks for with FIRST COUNT.
  bool has(std::string_view verb, Arguments arguments) const;

  Below& below_;
  Recorder& recorder_;
  std::optional<Made> made_;
};

}  // namespace tailtrace
