#include "decoder/export/call_spans.h"

#include <algorithm>
#include <string>

#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

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
std::vector<CallSpan> spans_by_segment(const CallHistory& calls) {
  const std::vector<std::uint64_t> first = beginnings(calls);
  std::vector<CallSpan> spans(calls.size() + 1);
  for (std::uint64_t n = 1; n <= calls.size(); ++n) {
    CallSegment segment = calls.at(n);
    CallSpan& span = spans[first[n]];
    if (span.segment == 0) span = {segment.items.first, 0, n};
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

}  // namespace

std::vector<CallSpan> call_spans(const CallHistory& calls) {
  std::vector<CallSpan> spans = spans_by_segment(calls);
  std::erase_if(spans, [&](const CallSpan& span) {
    return span.segment == 0 || calls.at(span.segment).level >= kMaxTimelineLevel;
  });
  std::stable_sort(spans.begin(), spans.end(), [&](const CallSpan& a, const CallSpan& b) {
    if (a.first != b.first) return a.first < b.first;
    return calls.at(a.segment).level < calls.at(b.segment).level;
  });
  return spans;
}

std::string span_name(const CallSegment& segment) {
  if (segment.function == nullptr) return "(gap)";
  return segment.function->name.empty() ? "??" : segment.function->name;
}

}  // namespace tailtrace
