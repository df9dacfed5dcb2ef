#include "decoder/export/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "decoder/export/call_spans.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson slice(const CallSegment& segment, const CallSpan& span, ThreadId thread) {
  const bool gap = segment.function == nullptr;
  OrderedJson json = {
      {"name", span_name(segment)}, {"cat", gap ? "gap" : "call"},       {"ph", "X"},
      {"ts", span.first},           {"dur", span.last - span.first + 1}, {"pid", thread.pid},
      {"tid", thread.tid}};
  if (!gap && !segment.function->module.empty())
    json["args"] = {{"module", segment.function->module}};
  return json;
}

}  // namespace

void begin_chrome_trace(const TextSink& line) {
  line(R"({"otherData":{"clock":"executed instructions, counted from the oldest held"},)");
  line(R"("displayTimeUnit":"ns","traceEvents":[)");
  line(R"({"name":"process_name","ph":"M","pid":0,"tid":0,"args":{"name":"tailtrace"}})");
}

void list_chrome_trace(const CallHistory& calls, ThreadId thread, const TextSink& line) {
  OrderedJson name = {{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", thread.pid},
                      {"tid", thread.tid},
                      {"args", {{"name", "thread " + std::to_string(thread.tid)}}}};
  if (!line("," + json_text(name))) return;
  for (const CallSpan& span : call_spans(calls))
    if (!line("," + json_text(slice(calls.at(span.segment), span, thread)))) return;
}

void end_chrome_trace(const TextSink& line) { line("]}"); }

}  // namespace tailtrace
