// What the panes of the browser show.
#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/text.h"
#include "decoder/history/calls/call_path.h"
#include "decoder/history/calls/stop_stack.h"
#include "decoder/history/listing.h"
#include "plugin/cli/browser/browser.h"

namespace tailtrace {
namespace {

// Calls are followed in so many items before the one at hand, and some behind it, so that few moves
// need another stretch. Callers that began before are not known then.
constexpr std::uint64_t kCallsBefore_items = 1 << 16;
constexpr std::uint64_t kCallsBehind_items = 1 << 12;
constexpr std::uint64_t kCallsLeast_items = 1 << 14;

PageStyle style_of(std::string_view text) {
  if (text.find("-- ") != std::string_view::npos) return PageStyle::kGap;
  return text.starts_with("    ") ? PageStyle::kPlain : PageStyle::kHeader;
}

// So many lines that `current` is among them, in the middle if there are enough.
template <class Lines>
std::pair<std::size_t, std::size_t> middle(const Lines& lines, std::size_t current, int rows) {
  const auto wanted = std::min(lines.size(), static_cast<std::size_t>(std::max(0, rows)));
  std::size_t first = current - std::min(current, wanted / 2);
  first = std::min(first, lines.size() - wanted);
  return {first, first + wanted};
}

}  // namespace

std::string Browser::position() const {
  if (at_ == 0) return "empty";
  std::string text = std::to_string(history_.from_newest(at_));
  if (all_known_) text += fmt::format(" of {}", history_.size());
  return text;
}

// Where the thread stands, behind the newest item.
std::vector<PageLine> Browser::stop_lines() {
  std::optional<Address> stop = history_.stop();
  if (!stop) return {};
  std::string place = place_text(symbols_, *stop);
  return {{printable(fmt::format("  => next: {:#x}{}", stop->value,
                                 place.empty() ? "" : " <" + place + ">")),
           PageStyle::kHeader}};
}

std::vector<PageLine> Browser::history_lines(int rows) {
  if (at_ == 0) return {{"  there is nothing in this history", PageStyle::kPlain}};
  const auto around = static_cast<std::uint64_t>(std::max(1, rows));
  Range range{at_, std::min(at_ + around, history_.newest())};
  while (range.first + around > at_ && holds(range.first - 1)) --range.first;
  ListingOptions options;
  options.addresses = addresses_;
  std::vector<PageLine> all;
  std::size_t current = 0;
  list_item_lines(history_, symbols_, range, options,
                  [&](std::uint64_t item, std::string_view line) {
                    if (item == at_) current = all.size();  // the last is the item itself
                    all.push_back({printable(line), style_of(line)});
                    return true;
                  });
  all[current].style = PageStyle::kCurrent;
  all[current].text[0] = '>';
  if (range.last == history_.newest())
    for (PageLine& line : stop_lines()) all.push_back(std::move(line));
  auto [first, last] = middle(all, current, rows);
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(last)};
}

std::vector<PageLine> Browser::source_lines(int rows) {
  if (at_ == 0) return {};
  std::optional<Line> here = line_of(at_);
  if (!here) return {{"no source line is known here", PageStyle::kFaint}};
  std::vector<PageLine> shown = {
      {printable(fmt::format("{}:{}", base_name(here->file), here->number)), PageStyle::kHeader}};
  const std::vector<std::string>& texts = texts_.lines(here->file);
  if (here->number == 0 || here->number > texts.size()) {
    shown.push_back({printable("cannot read " + here->file), PageStyle::kFaint});
    return shown;
  }
  auto [first, last] = middle(texts, here->number - 1, rows - 1);
  for (std::size_t i = first; i < last; ++i) {
    const bool is_here = i + 1 == here->number;
    shown.push_back({fmt::format("{} {:>5}  {}", is_here ? '>' : ' ', i + 1, texts[i]),
                     is_here ? PageStyle::kCurrent : PageStyle::kPlain});
  }
  return shown;
}

// The calls of a stretch that holds the item; null when they cannot be followed.
const CallHistory* Browser::calls_here() {
  const bool is_inside =
      calls_items_.size() != 0 && calls_items_.first <= at_ && at_ <= calls_items_.last;
  const bool is_whole = calls_items_.size() != 0 && !holds(calls_items_.first - 1);
  if (!is_inside || (!is_whole && at_ - calls_items_.first < kCallsLeast_items)) {
    std::uint64_t first = at_ - std::min(at_ - 1, kCallsBefore_items);
    if (!holds(first)) first = history_.oldest();
    calls_items_ = {first, std::min(at_ + kCallsBehind_items, history_.newest())};
    Result<CallHistory> calls = CallHistory::make(history_, symbols_, calls_items_);
    calls_.reset();
    if (calls) calls_.emplace(std::move(*calls));
  }
  return calls_ ? &*calls_ : nullptr;
}

std::vector<PageLine> Browser::path_lines(int rows) {
  if (at_ == 0 || rows <= 0) return {};
  const CallHistory* calls = calls_here();
  if (calls == nullptr) return {{"the calls cannot be followed here", PageStyle::kFaint}};
  const auto limit = static_cast<std::size_t>(rows);
  CallPath path = call_path(history_, symbols_, *calls, at_, limit);
  add_older_callers(history_, symbols_, *calls, stack_, limit, path);
  std::vector<PageLine> shown;
  for (const PathFrame& frame : path.frames) {
    cursor_.seek(frame.item);
    std::string where = frame.function->name;
    if (cursor_.valid() && !cursor_.item().is_gap)
      where =
          where_text(symbols_, frame.event ? frame.event->from : cursor_.item().instruction.address,
                     cursor_.item().epoch);
    if (frame.event) where += fmt::format("  ({})", event_text(*frame.event));
    shown.push_back({printable(fmt::format("#{} {}{}", shown.size(), where,
                                           frame.tail_called ? "  (jumped on)" : "")),
                     shown.empty() ? PageStyle::kHeader : PageStyle::kPlain});
  }
  for (const OlderCaller& caller : path.older)
    shown.push_back({printable(fmt::format("#{} {}  (called before)", shown.size(),
                                           where_text(symbols_, caller.address, kNewestEpoch))),
                     PageStyle::kPlain});
  if (path.cut) {
    shown.back() = {"... and its callers", PageStyle::kFaint};
  } else if (path.older.empty() && static_cast<int>(shown.size()) < rows) {
    const bool is_all = !holds(calls_items_.first - 1);
    if (!is_all)
      shown.push_back({fmt::format("callers before {} were not looked for",
                                   history_.from_newest(calls_items_.first)),
                       PageStyle::kFaint});
    else if (!history_.complete())
      shown.push_back({"older callers are not in the history", PageStyle::kFaint});
  }
  return shown;
}

void Browser::step_out() {
  message_.clear();
  const CallHistory* calls = at_ == 0 ? nullptr : calls_here();
  if (calls == nullptr) return;
  CallPath path = call_path(history_, symbols_, *calls, at_, 2);
  if (path.frames.size() < 2 || path.frames[1].is_return)
    message_ = "the call is older than what is known";
  else
    at_ = path.frames[1].item;
}

}  // namespace tailtrace
