#include "decoder/export/chrome_trace.h"

#include <fmt/compile.h>

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "decoder/base/json_text.h"
#include "decoder/export/call_spans.h"
#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// A thread's slices, as JSON. What those of a function have in common is made once.
class SliceTexts {
 public:
  explicit SliceTexts(ThreadId thread) : thread_(thread) {}

  std::string text(const CallSegment& segment, const CallSpan& span) {
    auto [known, added] = of_functions_.try_emplace(segment.function);
    if (added) known->second = parts_of(segment);
    const auto& [begin, end] = known->second;
    return fmt::format(FMT_COMPILE("{}{},\"dur\":{}{}"), begin, span.first,
                       span.last - span.first + 1, end);
  }

 private:
  using Parts = std::pair<std::string, std::string>;

  Parts parts_of(const CallSegment& segment) const {
    const bool gap = segment.function == nullptr;
    const std::string args = gap || segment.function->module.empty()
                                 ? ""
                                 : fmt::format(R"(,"args":{{"module":{}}})",
                                               json_text(OrderedJson(segment.function->module)));
    return {fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":)",
                        json_text(OrderedJson(span_name(segment))), gap ? "gap" : "call"),
            fmt::format(R"(,"pid":{},"tid":{}{}}})", thread_.pid, thread_.tid, args)};
  }

  ThreadId thread_;
  std::unordered_map<const Function*, Parts> of_functions_;  // null: gaps
};

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
  SliceTexts slices(thread);
  for (const CallSpan& span : call_spans(calls))
    if (!line("," + slices.text(calls.at(span.segment), span))) return;
}

void end_chrome_trace(const TextSink& line) { line("]}"); }

}  // namespace tailtrace
