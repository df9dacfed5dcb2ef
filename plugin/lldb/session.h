// Session: what a command of the plugin does to the LLDB that it is typed into: other commands,
// questions to the debug server, which has the history, and what it says to its user.
//
// Threading: on LLDB's thread, for the time of one command.
#pragma once

#include <lldb/API/LLDB.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"

namespace tailtrace::lldb_plugin {

using Json = nlohmann::json;

// `error: WHAT`, `  why:  WHY`, `  fix:  FIX`, `  now:  NOW` as they were.
Error error_in(std::string_view text);
// A word as LLDB reads it again in a command, without computing what is in it.
std::string lldb_word(std::string_view word);
// What is said where Ctrl-C has ended a command.
tl::unexpected<Error> interrupted();

class Session {
 public:
  Session(lldb::SBDebugger debugger, lldb::SBCommandReturnObject& result)
      : debugger_(debugger), result_(result) {}

  lldb::SBDebugger& debugger() { return debugger_; }
  lldb::SBTarget target() { return debugger_.GetSelectedTarget(); }
  lldb::SBThread thread() { return target().GetProcess().GetSelectedThread(); }

  // What an LLDB command prints. Errors: kNegative with LLDB's own text.
  Result<std::string> command(const std::string& line);
  // `monitor tailtrace WORDS` of the selected thread. Errors: as the server says them; kNoEngine
  // when the server is not ours; kGone behind Ctrl-C.
  Result<std::string> monitor(const std::string& words);
  // The same of the selected thread, whichever the server would take.
  Result<std::string> monitor_thread(const std::string& words);
  // The same where the answer is JSON lines; the first one says what the others are.
  Result<std::vector<Json>> monitor_json(const std::string& words);
  // A thread as the server names it: pPID.TID.
  std::string name_of(lldb::SBThread thread);
  // The same of the selected one.
  std::string thread_name() { return name_of(thread()); }
  // The answer to a packet. Errors: kNoEngine when the server does not know it; kGone.
  Result<std::string> packet(const std::string& packet);

  void print(const std::string& text) { result_.PutCString(text.c_str()); }
  // The command has failed.
  void fail_with(const Error& error) { result_.SetError((error.to_string()).c_str()); }

 private:
  // What the server answers to what would be `monitor tailtrace WORDS`.
  Result<std::string> question(const std::string& words);
  void stop_answering();
  tl::unexpected<Error> no_answer();

  lldb::SBDebugger debugger_;
  lldb::SBCommandReturnObject& result_;
};

}  // namespace tailtrace::lldb_plugin
