// LldbServerFace: what has to be said otherwise when the server below is LLDB's own lldb-server.
//
//   one selected thread   as everywhere else here: no packet names a thread behind a semicolon
//   one stop of many      where the other threads stand comes with each stop reply, and why they
//                         stopped when LLDB asks: steps that LLDB did not ask for are no reason
//   system calls          a step over one is told as a breakpoint
//   signals               have the system's numbers
//   an interrupt          that comes while the program stands between two steps is lost below
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/below/below.h"
#include "plugin/server/lldb/lldb_replay.h"
#include "plugin/server/recording/recorder.h"
#include "plugin/server/recording/stop_judge.h"
#include "plugin/server/rsp/feature_list.h"

namespace tailtrace {

class LldbServerFace {
 public:
  // `in_use`: the server below is an lldb-server. All else does nothing where it is not.
  LldbServerFace(Below& below, Recorder& recorder, StopJudge& judge, const LldbReplay& replay,
                 bool in_use)
      : below_(below), recorder_(recorder), judge_(judge), replay_(replay), in_use_(in_use) {}

  bool in_use() const { return in_use_; }
  void change_features(rsp::FeatureList& features) const;

  // Takes note of where the threads are that a stop reply names beside its own, and of those that
  // it does not name any more.
  void note_others(const rsp::StopReply& reply);

  // Whether it is, or is told as a breakpoint and is, a finished step. REQUIRES and errors as of
  // answer().
  Result<bool> is_step(const rsp::StopReply& reply);

  // Whether that answer to a request to run, which is no stop reply, comes of the program's end, of
  // which the server tells next. May wait a little.
  bool is_before_end(std::string_view answer) const;

  // A stop reply as LLDB is told it; `interrupted` makes a finished step the stop that it asked
  // for.
  std::string stop_for_debugger(std::string_view payload, const rsp::StopReply& reply,
                                bool interrupted) const;

  // The answer to a packet that is not passed on as it is; nothing for all others. REQUIRES: the
  // server below owes no answer. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view packet);

  // Why a thread stopped of which LLDB was not told, by its number alone, in hexadecimal. REQUIRES
  // and errors as of answer().
  Result<std::string> why_stopped(std::string_view thread);

 private:
  Below& below_;
  Recorder& recorder_;
  StopJudge& judge_;
  const LldbReplay& replay_;  // knows the breakpoints
  bool in_use_;
};

}  // namespace tailtrace
