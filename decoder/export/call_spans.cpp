#include "decoder/export/call_spans.h"

#include <algorithm>
#include <string>

#include "decoder/history/symbolizer.h"

namespace tailtrace {
namespace {

// Goes through the segments, and keeps which calls are open.
class Timeline {
 public:
  explicit Timeline(const CallHistory& calls)
      : calls_(calls), first_(calls.size() + 1), depth_(calls.size() + 1) {
    for (std::uint64_t n = 1; n <= calls.size(); ++n) {
      const std::uint64_t earlier = calls.at(n).earlier;
      first_[n] = earlier == 0 || earlier >= n ? n : first_[earlier];
    }
  }

  std::vector<CallSpan> spans() && {
    for (std::uint64_t n = 1; n <= calls_.size(); ++n) {
      const CallSegment segment = calls_.at(n);
      if (segment.function == nullptr)
        add_gap(segment);
      else
        go_to(n, segment.items.first);
      last_ = segment.items.last;
    }
    close_to(0);
    return std::move(spans_);
  }

 private:
  static constexpr std::uint64_t kMaxReopened = std::uint64_t{1} << 24;
  static constexpr std::size_t kNoSpan = ~std::size_t{0};

  struct Open {
    std::uint64_t call = 0;  // the first of its segments
    std::size_t span = kNoSpan;
  };

  // The calls from that of a segment outwards that are not open, innermost first; and how many are.
  std::size_t look_outwards(std::uint64_t number) {
    opening_.clear();
    while (number != 0) {
      const std::uint64_t call = first_[number];
      if (depth_[call] != 0) return depth_[call];
      // Stacks that take turns are deep or few; corrupt records may describe callers in a circle.
      if (!opening_.empty() && ++reopened_ >= kMaxReopened) break;
      opening_.push_back(call);
      number = calls_.at(call).caller;
    }
    return 0;
  }

  void go_to(std::uint64_t number, std::uint64_t item) {
    close_to(look_outwards(number));
    for (; !opening_.empty(); opening_.pop_back()) open(opening_.back(), item);
  }

  // Within what is open on both sides of it.
  void add_gap(const CallSegment& gap) {
    behind_ = std::max(behind_, gap.number);
    while (behind_ <= calls_.size() && calls_.at(behind_).function == nullptr) ++behind_;
    close_to(behind_ <= calls_.size() ? look_outwards(behind_) : 0);
    open(gap.number, gap.items.first);
  }

  void open(std::uint64_t call, std::uint64_t item) {
    open_.push_back({call, kNoSpan});
    depth_[call] = static_cast<std::uint32_t>(open_.size());
    if (calls_.at(call).level >= kMaxTimelineLevel) return;
    open_.back().span = spans_.size();
    spans_.push_back({item, item, call});
  }

  void close_to(std::size_t depth) {
    for (; open_.size() > depth; open_.pop_back()) {
      depth_[open_.back().call] = 0;
      if (open_.back().span != kNoSpan) spans_[open_.back().span].last = last_;
    }
  }

  const CallHistory& calls_;
  std::vector<std::uint64_t> first_;    // by segment, the first one of its call
  std::vector<std::uint32_t> depth_;    // by call, how many are open up to it; 0: it is not
  std::vector<Open> open_;              // outermost first
  std::vector<std::uint64_t> opening_;  // innermost first
  std::vector<CallSpan> spans_;
  std::uint64_t last_ = 0;    // item
  std::uint64_t behind_ = 0;  // the segment behind the newest gap
  std::uint64_t reopened_ = 0;
};

}  // namespace

std::vector<CallSpan> call_spans(const CallHistory& calls) { return Timeline(calls).spans(); }

std::string span_name(const CallSegment& segment) {
  if (segment.function == nullptr) return "(gap)";
  return segment.function->name.empty() ? "??" : segment.function->name;
}

}  // namespace tailtrace
