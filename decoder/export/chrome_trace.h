// Chrome trace: calls as a timeline in the JSON form that chrome://tracing, Perfetto's viewer and
// speedscope open ("Trace Event Format"). The clock is the count of executed instructions, one for
// a microsecond, which the document says: recorders do not know the time of each call.
//
// Threading: pure functions.
#pragma once

#include "decoder/export/sinks.h"
#include "decoder/history/calls/calls.h"

namespace tailtrace {

// A document of several threads: begin_chrome_trace, then a thread after the other, then
// end_chrome_trace. Each hands `line` lines without their line feeds until it says false.
void begin_chrome_trace(const TextSink& line);
void list_chrome_trace(const CallHistory& calls, ThreadId thread, const TextSink& line);
void end_chrome_trace(const TextSink& line);

}  // namespace tailtrace
