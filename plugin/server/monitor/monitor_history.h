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
#include <string>
#include <string_view>

#include "plugin/server/monitor/history_answers.h"
#include "plugin/server/recording/recorder.h"

namespace tailtrace {

class MonitorHistory {
 public:
  MonitorHistory(Below& below, Recorder& recorder) : below_(below), recorder_(recorder) {}

  // Lines for the `monitor help` of it all.
  static std::string_view help();

  // The text to show; nothing when the command is none of these. A request that cannot be
  // fulfilled is answered with a text that begins with "error: ". Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view command);

  using Text = HistoryAnswers::Text;
  // What is left to do for that text. It needs neither the server below nor the engine, so that
  // another thread may run it, as long as nothing else is asked for meanwhile. Where the newest
  // part was not enough all is to be prepared. Here there is one more command, `records`, whose
  // answer is not to be shown: a line, and records as they are.
  using Work = std::function<Text()>;
  Result<std::optional<Work>> prepare(std::string_view command, Part part = Part::kNewest);

  // That ends soon, and with it what it made. Whoever runs it may be at it.
  void abandon();

 private:
  struct Made {
    ThreadId thread;
    Address pc;
    std::unique_ptr<HistoryAnswers> answers;
  };

  // The thread that the last word names, which is taken off, or the selected one; none: `problem`
  // says why.
  Result<std::optional<ThreadId>> meant(std::string_view& words, std::string& problem);
  // Sets made_, to that part at least. False: `problem` says why there is none.
  Result<bool> make(ThreadId thread, Part part, std::string& problem);

  Below& below_;
  Recorder& recorder_;
  std::optional<Made> made_;
};

}  // namespace tailtrace
