#include "decoder/history/queries/why_listing.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "decoder/base/json_text.h"

namespace tailtrace {

using OrderedJson = nlohmann::ordered_json;

ToldReasons::ToldReasons(const Reasons& reasons, std::size_t limit)
    : reasons_(reasons), groups_(fold_decisions(reasons.decisions)) {
  cut_ = groups_.size() > limit;
  if (cut_) groups_.resize(limit);
}

std::string_view ToldReasons::end_word() const {
  if (cut_ || reasons_.end == Reasons::End::kLimit) return "limit";
  return reasons_.end == Reasons::End::kGap ? "gap" : "begin";
}

void list_reasons_json(const History& history, Symbolizer& symbols, const ToldReasons& told,
                       const LineSink& sink, JsonNumbers numbers) {
  for (const FoldedDecisions& group : told.groups()) {
    OrderedJson json = {{"times", group.times}, {"decisions", OrderedJson::array()}};
    for (std::size_t i = 0; i < group.count; ++i) {
      const Decision& decision = told.decision(group, i);
      OrderedJson item;
      list_items_json(
          history, symbols, std::vector<std::uint64_t>{decision.item},
          [&](std::string_view object) {
            item = OrderedJson::parse(object);
            return true;
          },
          numbers);
      if (decision.event) {
        item["event"] = kind_name(decision.event->kind);
        item["at"] = fmt::format("{:#x}", decision.event->from.value);
        if (decision.event->extra != 0) item["code"] = decision.event->extra;
        item["to"] = fmt::format("{:#x}", decision.to.value);
      }
      json["decisions"].push_back(std::move(item));
    }
    if (!sink(json_text(json))) return;
  }
}

}  // namespace tailtrace
