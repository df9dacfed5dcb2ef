// What MonitorHistory says of its commands.
#include "plugin/server/monitor/monitor_history.h"

namespace tailtrace {

std::string_view MonitorHistory::help() {
  return "monitor tailtrace instruction-history [/fs] [RANGE]\n"
         "monitor tailtrace function-call-history [RANGE]\n"
         "                                    what the thread did last; a range is N, N,M, N,+K,\n"
         "                                    N,-K or -, counted from 1 or back from -1;\n"
         "                                    /f folds loops, /s tells source lines\n"
         "monitor tailtrace items FIRST COUNT [pPID.TID]\n"
         "monitor tailtrace calls FIRST COUNT [pPID.TID]\n"
         "                                    the same for scripts, as JSON lines: COUNT of them "
         "or,\n"
         "                                    when that is too long for an answer, the first few;\n"
         "                                    where FIRST is negative all is counted from -1, the\n"
         "                                    newest, and what is older is left alone\n"
         "monitor tailtrace call-tree LIMIT PARTS SKIPPED [pPID.TID]\n"
         "                                    the newest calls, each once, but for as many as are\n"
         "                                    skipped, in the order in which they began; looked at "
         "are\n"
         "                                    the newest PARTS of calls or some more\n"
         "monitor tailtrace whole-calls LIMIT FUNCTION [pPID.TID]\n"
         "                                    the calls of a function, newest first; equal ones in "
         "a\n"
         "                                    row are one\n"
         "monitor tailtrace loops FIRST COUNT [pPID.TID]\n"
         "                                    loops among these instructions\n"
         "monitor tailtrace counts BEGIN END [pPID.TID]\n"
         "                                    how often the code at these addresses was executed\n"
         "monitor tailtrace hits LIMIT LOCATION [pPID.TID]\n"
         "                                    when a breakpoint there would have stopped, newest "
         "first\n"
         "monitor tailtrace why POSITION LIMIT [pPID.TID]\n"
         "                                    the branches that led to an item, newest first\n"
         "monitor tailtrace stack POSITION LIMIT [pPID.TID]\n"
         "                                    the calls that led to an item, innermost first\n"
         "monitor tailtrace frames POSITION LIMIT [pPID.TID]\n"
         "                                    what was on the stack then, innermost first\n"
         "monitor tailtrace find LIMIT ADDRESS... [pPID.TID]\n"
         "                                    the newest instructions at these addresses, as many "
         "as\n"
         "                                    an answer holds\n";
}

}  // namespace tailtrace
