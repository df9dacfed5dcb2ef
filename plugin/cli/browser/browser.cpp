#include "plugin/cli/browser/browser.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/base/text.h"
#include "decoder/history/item_range.h"
#include "decoder/history/listing.h"
#include "decoder/symbols/missing_place.h"

namespace tailtrace {
namespace {

// What is looked at between two chances to interrupt.
constexpr std::uint64_t kPiece_items = std::uint64_t{1} << 18;

}  // namespace

Browser::Browser(const History& history, ProcessSymbols& symbols, Wait wait,
                 std::vector<Address> stack)
    : history_(history),
      symbols_(symbols),
      wait_(std::move(wait)),
      stack_(std::move(stack)),
      cursor_(history) {
  if (holds(history_.newest())) at_ = history_.newest();
  all_known_ = at_ == 0;
}

bool Browser::holds(std::uint64_t number) const {
  return number != 0 && number <= history_.newest() && history_.holds(number);
}

bool Browser::waits(const std::string& what) {
  interrupted_ = !wait_(what);
  if (interrupted_) message_ = "interrupted";
  return !interrupted_;
}

// Looks at everything, piece by piece; nothing: interrupted.
std::optional<std::uint64_t> Browser::oldest() {
  std::uint64_t known = history_.newest();
  while (!all_known_) {
    if (!holds(known - kPiece_items)) break;
    known -= kPiece_items;
    if (!waits(fmt::format("counting: {} items so far", history_.newest() - known)))
      return std::nullopt;
  }
  all_known_ = true;
  return history_.oldest();
}

void Browser::step(std::int64_t items) {
  message_.clear();
  if (at_ == 0) return;
  const std::uint64_t to = at_ + static_cast<std::uint64_t>(items);
  if (items > 0 && (to > history_.newest() || to < at_)) {
    if (at_ == history_.newest()) message_ = "this is the newest";
    at_ = history_.newest();
  } else if (holds(to)) {
    at_ = to;
  } else if (std::optional<std::uint64_t> first = oldest()) {
    if (at_ == *first) message_ = "this is the oldest that is known";
    at_ = *first;
  }
}

void Browser::to_newest() {
  message_.clear();
  if (at_ != 0) at_ = history_.newest();
}

void Browser::to_oldest() {
  message_.clear();
  if (at_ == 0) return;
  if (std::optional<std::uint64_t> first = oldest()) at_ = *first;
}

void Browser::go_to(const std::string& position) {
  message_.clear();
  if (at_ == 0 || position.empty()) return;
  if (position.front() != '-' && !oldest()) return;
  Result<Range> range = item_range(history_, position, 1);
  if (range && range->size() != 0)
    at_ = range->first;
  else
    message_ = range ? "there is no item " + position : range.error().to_line();
}

// --- source lines ----------------------------------------------------------------------------

std::optional<Browser::Line> Browser::line_of(std::uint64_t item) {
  cursor_.seek(item);
  if (!cursor_.valid() || cursor_.item().is_gap) return std::nullopt;
  const Address address = cursor_.item().instruction.address;
  const Epoch when = cursor_.item().epoch;
  std::optional<SourceLine> line = symbols_.line_at(address, when);
  if (!line) return std::nullopt;
  return Line{std::string(line->file), line->line, &symbols_.function_in(address, when)};
}

// The first instruction of the stretch of that line that holds the item; nothing: interrupted.
std::optional<std::uint64_t> Browser::first_of_line(std::uint64_t item, const Line& line) {
  for (std::uint64_t looked = 1; holds(item - 1) && line_of(item - 1) == line; --item, ++looked)
    if (looked % kPiece_items == 0 && !waits("looking for the beginning of the line"))
      return std::nullopt;
  return item;
}

// The next item that is of a line, and of another than this one is.
std::optional<std::uint64_t> Browser::other_line(bool back) {
  const std::optional<Line> here = line_of(at_);
  const std::uint64_t by = back ? ~0ull : 1;
  std::uint64_t looked = 0;
  bool left = false;  // the same line, come to again, is another stretch of it
  for (std::uint64_t item = at_ + by; holds(item); item += by) {
    std::optional<Line> line = line_of(item);
    left |= line != here;
    if (line && left) return item;
    if (++looked % kPiece_items == 0 && !waits("looking for another line")) return std::nullopt;
  }
  message_ = back ? "there is no older line that is known" : "there is no newer line that is known";
  return std::nullopt;
}

void Browser::step_lines(bool back) {
  message_.clear();
  if (at_ == 0) return;
  if (back) {
    // Inside of a line, back means to where it began, as in a debugger.
    if (std::optional<Line> here = line_of(at_)) {
      std::optional<std::uint64_t> first = first_of_line(at_, *here);
      if (!first) return;
      if (*first != at_) {
        at_ = *first;
        return;
      }
    }
  }
  std::optional<std::uint64_t> found = other_line(back);
  if (found && back) found = first_of_line(*found, *line_of(*found));
  if (found) at_ = *found;
}

// --- searches --------------------------------------------------------------------------------

std::optional<std::uint64_t> Browser::find_back(const Wanted& wanted) {
  std::optional<std::uint64_t> found;
  auto see = [&](std::uint64_t item) {
    found = item;
    return false;
  };
  std::uint64_t from = at_ - 1;
  while (!found && holds(from)) {
    const std::uint64_t low = from - std::min(from - 1, kPiece_items - 1);
    const Range piece{holds(low) ? low : history_.oldest(), from};
    find_items(history_, symbols_, piece, wanted, Order::kNewestFirst, see);
    from = piece.first - 1;
    if (!found && !waits(fmt::format("searching at {}", history_.from_newest(piece.first)))) break;
  }
  return found;
}

std::optional<std::uint64_t> Browser::find_forward(const Wanted& wanted) {
  std::optional<std::uint64_t> found;
  auto see = [&](std::uint64_t item) {
    found = item;
    return false;
  };
  std::uint64_t from = at_ + 1;
  while (!found && from <= history_.newest()) {
    const Range piece{from, std::min(from + kPiece_items - 1, history_.newest())};
    find_items(history_, symbols_, piece, wanted, Order::kOldestFirst, see);
    from = piece.last + 1;
    if (!found && !waits(fmt::format("searching at {}", history_.from_newest(piece.last)))) break;
  }
  return found;
}

void Browser::search(const std::string& location, bool back) {
  message_.clear();
  interrupted_ = false;
  if (!location.empty()) searched_ = location;
  if (at_ == 0 || searched_.empty()) return;
  Result<Location> parsed = parse_location(searched_);
  if (!parsed) {
    message_ = parsed.error().to_line();
    return;
  }
  Wanted wanted;
  wanted.location = std::move(*parsed);
  wanted.entries = true;
  std::optional<std::uint64_t> found = back ? find_back(wanted) : find_forward(wanted);
  if (found) at_ = *found;
  if (found || interrupted_) return;
  if (auto missing = missing_place(*wanted.location, wanted.entries, symbols_))
    message_ = missing->to_line();
  else
    message_ = fmt::format("{} was not executed {} here", searched_, back ? "before" : "after");
}

}  // namespace tailtrace
