// What steps in the history are made of: the server finds the way, LLDB believes that it lets the
// program run, and so sees where it is.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <string>

#include "plugin/lldb/frames.h"
#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

// While it lives, commands that let the program run return when it has stopped, and the calls that
// led there are looked for by move() alone.
class Moving {
 public:
  // `frames`: LLDB is to show them from here on.
  explicit Moving(Session& session, bool frames = true)
      : session_(session), was_async_(session.debugger().GetAsync()) {
    session_.debugger().SetAsync(false);
    if (frames) show_history_frames(session_);
    lead_history_frames(session_);
  }
  ~Moving() {
    follow_history_frames(session_);
    session_.debugger().SetAsync(was_async_);
  }

 private:
  Session& session_;
  bool was_async_;
};

struct Moved {
  bool moved = false;
  std::string way;  // as the server has it: "OK", or what the step has met
};

// One step of the server's. Errors: kNegative when the thread has no history.
Result<Moved> move(Session& session, const std::string& step);
// Errors: kNegative where nothing has moved.
Result<void> show(Session& session, const Moved& moved);

lldb::addr_t pc_of(Session& session);
lldb::SBLineEntry line_at(Session& session, lldb::addr_t address);
bool same_line(const lldb::SBLineEntry& a, const lldb::SBLineEntry& b);
// The code of the function at `pc` as `;BEGIN;END`; empty when it is not known.
std::string code_of_function(Session& session, lldb::addr_t pc);
// The code around `pc` that belongs to its line, as `BEGIN;END`; empty when it has none.
std::string code_of_line(Session& session, lldb::addr_t pc);

}  // namespace tailtrace::lldb_plugin
