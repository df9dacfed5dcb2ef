// The table of the plugin's commands: words for the debug server's answers, where the history is,
// and LLDB's way to ask. Questions to a whole recording go to the command line, with its options.
//
// Threading: commands run on LLDB's thread.
#pragma once

#include <span>

#include "plugin/lldb/recording.h"
#include "plugin/lldb/session.h"

namespace tailtrace::lldb_plugin {

struct Row {
  const char* name;
  const char* verb;  // of the command line, which takes the options; null: it has none for this
  const char* arguments;
  const char* help;
  const char* repeat;  // what Enter does then; null: the same again
  std::size_t least, most;
  Result<void> (*run)(Session&, const Words&);  // null: the command line always answers
};

std::span<const Row> rows();

// `tailtrace NAME ARGUMENTS`
std::string syntax_of(const Row& row);

// Errors: kUsage for words that are not the row's; those of what it does.
Result<void> run_row(const Row& row, Session& session, const Words& words);

}  // namespace tailtrace::lldb_plugin
