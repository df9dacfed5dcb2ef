// Counting: what a command says and obeys while a long history is counted. On a terminal it says
// how far that is; Ctrl-C ends it, and what was read by then is the history.
//
// Threading: the main thread; one at a time.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdio>

#include "decoder/history/segment_store.h"

namespace tailtrace {

class Counting {
 public:
  // Says what it says on `err`.
  explicit Counting(std::FILE* err);
  // Wipes its line away, and gives Ctrl-C back its meaning.
  ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  // For HistorySettings::watch. REQUIRES: it lives as long as the history is made.
  SegmentStore::Watch watch();

  // Ctrl-C ended the counting.
  bool interrupted() const { return interrupted_; }

 private:
  bool look(const SegmentStore::Progress& progress);

  std::FILE* err_;
  bool terminal_;
  bool shown_ = false;
  bool interrupted_ = false;
  std::chrono::steady_clock::time_point begun_;
  struct sigaction before_ {};
};

// "indexed 12 % (newest 48.1 M instructions ready)"
std::string progress_text(const SegmentStore::Progress& progress);

}  // namespace tailtrace
