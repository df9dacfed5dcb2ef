#include "decoder/export/html_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/export/call_spans.h"
#include "decoder/export/page_parts.h"
#include "decoder/history/listing.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Fit to stand between <script> and </script>, whatever it says: all of ASCII, and none of what
// markup is made of.
std::string data_text(const OrderedJson& json) {
  std::string text;
  for (char c : json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return text;
}

}  // namespace

void HtmlPage::put(std::string_view line) { more_ = more_ && sink_(line); }

std::size_t HtmlPage::name(const std::string& text) {
  auto [known, is_new] = numbers_.try_emplace(text, names_.size());
  if (is_new) names_.push_back(text);
  return known->second;
}

void HtmlPage::begin(const std::string& source) {
  put(kPageHead);
  put(R"({"schema":"tailtrace.page/1","clock":"executed instructions",)");
  put("\"source\":" + data_text(source) + ",\"threads\":[");
}

void HtmlPage::add(const History& history, const CallHistory& calls, const std::vector<Loop>& loops,
                   Symbolizer& symbols) {
  std::vector<CallSpan> spans = call_spans(calls);
  const std::size_t dropped = spans.size() - std::min(spans.size(), kMaxPageCalls);
  spans.erase(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(dropped));
  OrderedJson calls_shown = OrderedJson::array(), loops_shown = OrderedJson::array();
  for (const CallSpan& span : spans) {
    CallSegment segment = calls.at(span.segment);
    calls_shown.insert(calls_shown.end(),
                       {span.first, span.last, segment.level, name(span_name(segment)),
                        segment.function == nullptr ? 1 : 0});
  }
  auto place = [&](const Loop& loop, Address at) -> OrderedJson {
    return at.is_null() ? OrderedJson(-1) : OrderedJson(name(where_text(symbols, at, loop.epoch)));
  };
  for (const Loop& loop : loops)
    loops_shown.insert(loops_shown.end(), {loop.items.first, loop.items.last, loop.rounds,
                                           place(loop, loop.head), place(loop, loop.exit)});
  const ThreadFrame& frame = history.frame();
  OrderedJson thread = {{"pid", frame.thread.pid},        {"tid", frame.thread.tid},
                        {"engine", frame.engine},         {"newest", history.newest()},
                        {"older_calls", dropped},         {"calls", std::move(calls_shown)},
                        {"loops", std::move(loops_shown)}};
  put((std::exchange(any_, true) ? "," : "") + data_text(thread));
}

void HtmlPage::end() {
  put("],\"names\":" + data_text(names_) + "}");
  put(kPageStyleAndBody);
  put(kPageProgram);
}

}  // namespace tailtrace
