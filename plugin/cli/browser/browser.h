// Browser: where a person stands who looks through a thread's history, the moves there are, and
// what the panes show of it. It knows no terminal and no keys.
//
// The history's numbers begin at the newest, so that the first page costs nothing, however long the
// history is; a move to the oldest item, or a search, looks at the rest piece by piece, and can be
// interrupted between two pieces.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <optional>

#include "decoder/history/calls/calls.h"
#include "decoder/history/queries/find.h"
#include "decoder/symbols/process_symbols.h"
#include "plugin/cli/browser/page.h"
#include "plugin/cli/source_texts.h"

namespace tailtrace {

class Browser {
 public:
  // Told what takes long, now and then; false: enough.
  using Wait = std::function<bool(const std::string& what)>;

  // Stands on the newest item. REQUIRES: the history's numbers begin at the newest; both live as
  // long as this.
  // `stack` is the thread's where the history ends; empty: not known.
  Browser(const History& history, ProcessSymbols& symbols, Wait wait,
          std::vector<Address> stack = {});

  // Moves. Where one cannot be made, or not as far, message() says why.
  void step(std::int64_t items);
  void step_lines(bool back);  // to the first instruction of a stretch of another source line
  void step_out();             // to the caller
  void to_newest();
  void to_oldest();
  void go_to(const std::string& position);  // "-12", from the newest; "12", from the oldest
  // Back or forward to where a breakpoint at that location would have stopped; empty: at the last.
  void search(const std::string& location, bool back);

  void show_addresses(bool yes) { addresses_ = yes; }
  bool shows_addresses() const { return addresses_; }

  // The item; 0: the history is empty.
  std::uint64_t at() const { return at_; }
  // "-12", or "-12 of 4,711" when it is known how many there are; "empty".
  std::string position() const;
  // What the last move had to say.
  const std::string& message() const { return message_; }

  // What the panes show, `rows` lines at most.
  std::vector<PageLine> history_lines(int rows);
  std::vector<PageLine> source_lines(int rows);
  std::vector<PageLine> path_lines(int rows);

 private:
  struct Line {
    std::string file;
    unsigned number = 0;
    const Function* function = nullptr;
    friend bool operator==(const Line&, const Line&) = default;
  };

  bool holds(std::uint64_t number) const;
  std::optional<std::uint64_t> oldest();
  std::optional<Line> line_of(std::uint64_t item);
  std::optional<std::uint64_t> first_of_line(std::uint64_t item, const Line& line);
  std::optional<std::uint64_t> other_line(bool back);
  std::optional<std::uint64_t> find_back(const Wanted& wanted);
  std::optional<std::uint64_t> find_forward(const Wanted& wanted);
  bool waits(const std::string& what);
  const CallHistory* calls_here();
  std::vector<PageLine> stop_lines();

  const History& history_;
  ProcessSymbols& symbols_;
  Wait wait_;
  std::vector<Address> stack_;
  HistoryCursor cursor_;
  SourceTexts texts_;

  std::uint64_t at_ = 0;
  bool all_known_ = false;
  bool addresses_ = false;
  bool interrupted_ = false;
  std::string message_, searched_;

  std::optional<CallHistory> calls_;  // of these items
  Range calls_items_;
};

}  // namespace tailtrace
