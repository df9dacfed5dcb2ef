// LldbFace: where LLDB speaks another dialect of the remote protocol than GDB does. Whether the
// debugger is LLDB is known from its first list of features; for GDB everything here stays as it
// is.
//
//   exit status  LLDB takes two digits of it; gdbserver sends one where one is enough
//   `k`          LLDB waits for a stop reply, the others send none
//   libraries    LLDB takes the list's `main-lm` for the dynamic linker's own structure, and then
//                finds no library; without the list it asks the program's memory, and finds all
//   signals      LLDB names the only thread that goes on with one, and means those it makes, too
//   watchpoints  GDB takes those for loads and stores where those for loads alone are refused;
//                LLDB does not
//   registers    LLDB is told more of them: which one is the thread pointer, for one
//   names        LLDB takes a thread's name from stop replies, which others do not have
//   faults       LLDB takes their cause from stop replies as well
//   memory map, host and process   asked by packets that gdbserver does not know
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plugin/server/below/below.h"
#include "plugin/server/rsp/feature_list.h"
#include "plugin/server/rsp/thread_selector.h"

namespace tailtrace {

class LldbFace {
 public:
  // `is_local`: the program's own memory map is /proc/PID/maps. `detach_kills`: a detach from the
  // debugger's process means a kill. LLDB detaches when it ends from programs that it did not start
  // itself, as it believes of all that a server has.
  // `is_spoken_below`: the server below is LLDB's own, and nothing has to be said otherwise.
  LldbFace(Below& below, bool is_local, bool detach_kills, bool is_spoken_below)
      : below_(below),
        is_local_(is_local),
        detach_kills_(detach_kills),
        is_spoken_below_(is_spoken_below) {}

  // qSupported.
  void meet_debugger(std::string_view packet);
  // The next one may be another.
  void forget_debugger() { is_lldb_ = killing_ = false; }
  bool is_lldb() const { return is_lldb_; }
  // What the server below is to tell of, unlike LLDB: without it gdbserver waits for ever when a
  // thread other than the first executes a program.
  void change_wishes(rsp::FeatureList& wanted) const;
  void change_features(rsp::FeatureList& features) const;

  // A request as the server below understands it. Errors: kGone.
  Result<std::string> request_for_server(std::string packet);
  // A stop reply as LLDB reads it.
  std::string stop_for_debugger(std::string_view payload) const;
  // LLDB is told of a stop: the reply, which has the thread's name now, and the cause of a fault.
  // REQUIRES: the server below owes no answer.
  std::string tell(std::string_view payload);
  // `E.TEXT` as LLDB reads it.
  static std::string error_for_debugger(std::string_view error);
  // The answer to any other request as LLDB reads it.
  std::string answer_for_debugger(std::string_view payload) const;
  // What LLDB is told when the server has answered a request to end.
  std::string end_for_debugger(std::string_view request, std::string_view payload) const;

  // The answer to a packet that only LLDB sends; nothing for all others. REQUIRES: the server below
  // owes no answer. Errors: kGone.
  Result<std::optional<std::string>> answer(std::string_view packet);

 private:
  Result<std::string> run_for_server(std::string packet);
  std::string cause_of(const rsp::StopReply& reply);
  std::optional<std::string> why_stopped(std::string_view thread) const;
  Result<std::string> process_info();
  Result<std::string> memory_region(std::string_view address);

  Below& below_;
  bool is_local_;
  bool detach_kills_;
  bool is_spoken_below_;
  bool is_lldb_ = false;
  bool killing_ = false;
  std::string told_;  // the stop reply that LLDB was told last
  std::optional<rsp::ThreadSelector> told_thread_;
};

}  // namespace tailtrace
