#include "decoder/history/calls/whole_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"
#include "decoder/history/calls/newest_calls.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The call instruction; nothing when it was not recorded.
std::optional<HistoryItem> caller_of(const CallHistory& calls, const CallSegment& segment,
                                     HistoryCursor& cursor) {
  // One that is newer is known by the return to it.
  if (segment.caller == 0 || segment.caller > segment.number) return std::nullopt;
  cursor.seek(calls.at(segment.caller).items.last);
  if (!cursor.valid() || cursor.item().is_gap) return std::nullopt;
  return cursor.item();
}

// Whether `next` was called next after `segment`, by the same call.
bool follows(const CallHistory& calls, const CallSegment& next, const CallSegment& segment) {
  return next.function == segment.function && next.caller != 0 && segment.caller != 0 &&
         calls.at(next.caller).earlier == segment.caller;
}

}  // namespace

WholeCalls calls_of(const CallHistory& calls, LocationMatcher& functions, std::uint64_t limit,
                    bool fold) {
  WholeCalls whole;
  for (std::uint64_t number = calls.size(); number != 0; --number) {
    const CallSegment segment = calls.at(number);
    if (segment.earlier != 0 || segment.function == nullptr) continue;
    if (!functions.is_function(*segment.function)) continue;
    ++whole.count;
    if (fold && !whole.newest.empty() &&
        follows(calls, calls.at(whole.newest.back().first), segment)) {
      WholeCall& call = whole.newest.back();
      call = {number, {segment.items.first, call.items.last}, call.times + 1};
    } else if (whole.newest.size() < limit) {
      const std::uint64_t last = calls.at(calls.last_part(number)).items.last;
      whole.newest.push_back({number, {segment.items.first, last}});
    }
  }
  std::reverse(whole.newest.begin(), whole.newest.end());
  return whole;
}

CallTree newest_whole_calls(const History& history, const CallHistory& calls, std::uint64_t limit) {
  auto called_nothing = [](const CallSegment& s) { return s.earlier == 0 && s.later == 0; };
  CallTree tree;
  std::vector<WholeCall>& found = tree.calls;
  CallSegment next;  // the first of what was found last
  std::uint64_t number = calls.size();
  for (; number != 0; --number) {
    const CallSegment segment = calls.at(number);
    if (segment.function == nullptr || segment.later != 0) continue;
    const bool is_one_more = !found.empty() && called_nothing(next) && called_nothing(segment) &&
                             follows(calls, next, segment);
    if (!is_one_more && found.size() == limit) break;
    next = calls.at(calls.first_part(number));
    if (is_one_more)
      found.back() = {number, {next.items.first, found.back().items.last}, found.back().times + 1};
    else
      found.push_back({next.number, {next.items.first, segment.items.last}});
  }
  std::ranges::sort(found, {}, [](const WholeCall& call) { return call.items.first; });
  tree.is_cut = number == 0 && holds_older(history, calls);
  return tree;
}

void list_whole_calls(const History& history, const CallHistory& calls, Symbolizer& symbols,
                      std::span<const WholeCall> whole, bool from_newest, const LineSink& sink) {
  HistoryCursor cursor(history);
  for (const WholeCall& call : whole) {
    const CallSegment segment = calls.at(call.first);
    std::string items = from_newest ? fmt::format("[{},{}]", history.from_newest(call.items.first),
                                                  history.from_newest(call.items.last))
                                    : fmt::format("[{},{}]", history.from_oldest(call.items.first),
                                                  history.from_oldest(call.items.last));
    std::string text = fmt::format("    {:<19}  {}", items, segment.function->name);
    if (auto caller = caller_of(calls, segment, cursor))
      text += fmt::format("  {} from {}", segment.tail_called ? "jumped to" : "called",
                          where_text(symbols, caller->instruction.address, caller->epoch));
    if (!sink(text)) return;
  }
}

void list_whole_calls_json(const History& history, const CallHistory& calls, Symbolizer& symbols,
                           std::span<const WholeCall> whole, const LineSink& sink,
                           JsonNumbers numbers) {
  HistoryCursor cursor(history);
  const bool both = numbers == JsonNumbers::kBoth;
  auto item = [&](std::uint64_t number) {
    return both ? OrderedJson(history.from_oldest(number))
                : OrderedJson(history.from_newest(number));
  };
  for (const WholeCall& call : whole) {
    const CallSegment segment = calls.at(call.first);
    OrderedJson json;
    if (both) json["number"] = call.first;
    json["position"] = static_cast<std::int64_t>(call.first - calls.size()) - 1;
    if (!segment.function->name.empty()) json["function"] = segment.function->name;
    if (!segment.function->module.empty()) json["module"] = segment.function->module;
    json["level"] = segment.level;
    json["first"] = item(call.items.first);
    json["last"] = item(call.items.last);
    if (auto caller = caller_of(calls, segment, cursor)) {
      const Address address = caller->instruction.address;
      const Function& function = symbols.function_in(address, caller->epoch);
      json["caller"] = {{"address", fmt::format("{:#x}", address.value)}};
      if (!function.name.empty()) json["caller"]["function"] = function.name;
      if (auto line = symbols.line_at(address, caller->epoch)) {
        json["caller"]["file"] = line->file;
        json["caller"]["line"] = line->line;
      }
    }
    if (segment.tail_called) json["tail_called"] = true;
    if (segment.begun_before) json["begun_before"] = true;
    if (call.times != 1) json["times"] = call.times;
    if (!sink(json_text(json))) return;
  }
}

}  // namespace tailtrace
