#include "decoder/export/chrome_trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) {
  // Names of files and symbols need not be UTF-8; the document must.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// From where to where a call lasted, with all it called.
struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

// The number of the segment that a call began with, by segment.
std::vector<std::uint64_t> beginnings(const CallHistory& calls) {
  std::vector<std::uint64_t> first(calls.size() + 1);
  for (std::uint64_t n = 1; n <= calls.size(); ++n) {
    std::uint64_t earlier = calls.at(n).earlier;
    first[n] = earlier == 0 || earlier >= n ? n : first[earlier];
  }
  return first;
}

// Of segments that a call begins with; the others are left empty. What a call called lasts no
// longer than itself: it ends where the last of that ends, and, where its own beginning is older
// than the history, begins where the first of that begins.
std::vector<Span> spans_of(const CallHistory& calls, const std::vector<std::uint64_t>& first) {
  std::vector<Span> spans(calls.size() + 1);
  for (std::uint64_t n = 1; n <= calls.size(); ++n) {
    CallSegment segment = calls.at(n);
    Span& span = spans[first[n]];
    if (span.first == 0) span.first = segment.items.first;
    span.last = segment.items.last;
  }
  for (std::uint64_t n = 1; n <= calls.size(); ++n)
    if (std::uint64_t caller = calls.at(n).caller; first[n] == n && caller > n)
      spans[first[caller]].first = std::min(spans[first[caller]].first, spans[n].first);
  for (std::uint64_t n = calls.size(); n != 0; --n)
    if (std::uint64_t caller = calls.at(n).caller; first[n] == n && caller != 0)
      spans[first[caller]].last = std::max(spans[first[caller]].last, spans[n].last);
  return spans;
}

Json slice(const CallSegment& segment, const Span& span, ThreadId thread) {
  bool gap = segment.function == nullptr;
  std::string name = gap ? "(gap)" : segment.function->name;
  if (name.empty()) name = "??";
  Json json = {{"name", name},     {"cat", gap ? "gap" : "call"},       {"ph", "X"},
               {"ts", span.first}, {"dur", span.last - span.first + 1}, {"pid", thread.pid},
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
  Json name = {{"name", "thread_name"},
               {"ph", "M"},
               {"pid", thread.pid},
               {"tid", thread.tid},
               {"args", {{"name", "thread " + std::to_string(thread.tid)}}}};
  if (!line("," + text_of(name))) return;
  std::vector<std::uint64_t> first = beginnings(calls);
  std::vector<Span> spans = spans_of(calls, first);
  for (std::uint64_t n = 1; n <= calls.size(); ++n) {
    if (first[n] != n) continue;
    CallSegment segment = calls.at(n);
    if (segment.level >= kMaxTimelineLevel) continue;
    if (!line("," + text_of(slice(segment, spans[n], thread)))) return;
  }
}

void end_chrome_trace(const TextSink& line) { line("]}"); }

}  // namespace tailtrace
