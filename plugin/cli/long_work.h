// Long work: what a command says and obeys while it reads a long history. On a terminal it says how
// far that is; Ctrl-C ends it, and what was read by then is all there is.
//
// Threading: the main thread; within each other, not beside each other.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "decoder/history/history.h"

namespace tailtrace {

constexpr char kPrintingInterrupted[] = "interrupted: what follows is not shown";

class LongWork {
 public:
  // Says what it says on `err`.
  explicit LongWork(std::FILE* err);
  // Wipes its line away, and gives Ctrl-C back its meaning.
  ~LongWork();
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

  // Says on a terminal how far it is, if it takes long. May be called often.
  void say(const std::function<std::string()>& progress);

  // Ctrl-C was pressed.
  static bool interrupted();

 private:
  std::FILE* err_;
  bool terminal_;
  std::chrono::steady_clock::time_point next_;
  struct sigaction before_ {};
};

// A long list is printed: Ctrl-C ends it behind a line.
class Printing {
 public:
  explicit Printing(std::FILE* out) : out_(out) {}
  // Says that it was interrupted, if that has left out a line.
  ~Printing();

  // Whether the next line is to be printed. To be asked before each: until then Ctrl-C ends all.
  bool goes_on();

  // A line was not printed because Ctrl-C was pressed before.
  bool interrupted() const { return interrupted_; }

 private:
  std::FILE* out_;
  std::optional<LongWork> work_;
  bool interrupted_ = false;
};

// Wipes the line away that says how far something is, for others to print: it comes again.
void wipe_progress();

// A history is counted.
class Counting {
 public:
  explicit Counting(std::FILE* err) : work_(err) {}

  // For HistorySettings::watch. REQUIRES: it lives as long as the history is made.
  SegmentStore::Watch watch();

  // Ctrl-C ended the counting.
  bool interrupted() const { return interrupted_; }

 private:
  LongWork work_;
  bool interrupted_ = false;
};

// A question is asked of histories, one after the other.
class Answering {
 public:
  explicit Answering(std::FILE* err) : work_(std::in_place, err) {}

  // REQUIRES: it outlives the histories that are made with these settings.
  void watch(HistorySettings& settings);

  // The answer is there, to be printed: says no more, and Ctrl-C has its meaning again.
  void finish() { work_.reset(); }

  // Ctrl-C ended the looking, for all of them, or the printing of what was found.
  bool interrupted() const { return stop_.stop_requested() || LongWork::interrupted(); }

  // "interrupted at item -4812345 of 4900000: the answer is of a part of the history"; of the
  // printing, kPrintingInterrupted.
  std::string interruption_text() const;

 private:
  void look(const History& history, std::uint64_t number);

  std::optional<LongWork> work_;  // nothing: it is finished
  std::stop_source stop_;
  std::int64_t at_ = 0;     // the item where it was ended, from the newest
  std::uint64_t size_ = 0;  // of the history where it was
};

// "indexed 12 % (newest 48.1 M instructions ready)"
std::string progress_text(const SegmentStore::Progress& progress);
// "answering: at item -48.1 M of 4900.0 M"
std::string progress_text(const History& history, std::uint64_t number);

}  // namespace tailtrace
