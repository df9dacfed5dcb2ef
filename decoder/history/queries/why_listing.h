// Reasons as they are told: rounds folded, not more of them than are wanted, and where they end.
//
// Threading: one thread at a time for a symbolizer. The reasons must outlive what tells of them.
#pragma once

#include "decoder/history/listing.h"
#include "decoder/history/queries/why.h"

namespace tailtrace {

// Decisions that one chain is followed through.
constexpr std::size_t kMaxReasons = 100'000;

class ToldReasons {
 public:
  ToldReasons(const Reasons& reasons, std::size_t limit);

  const std::vector<FoldedDecisions>& groups() const { return groups_; }
  const Decision& decision(const FoldedDecisions& group, std::size_t i) const {
    return reasons_.decisions[group.first + i];
  }
  // There are more groups than are told.
  bool cut() const { return cut_; }
  // "begin", "gap" or "limit".
  std::string_view end_word() const;
  const Reasons& reasons() const { return reasons_; }

 private:
  const Reasons& reasons_;
  std::vector<FoldedDecisions> groups_;
  bool cut_ = false;
};

// One JSON object a line for each group; a decision is an item as list_items_json has it. Where an
// event took the flow away behind it, with that: "event", "at" and "code" as those of items, and
// where it led as "to".
//   {"times":3,"decisions":[{"number":7,...,"taken":true}]}
void list_reasons_json(const History& history, Symbolizer& symbols, const ToldReasons& told,
                       const LineSink& sink, JsonNumbers numbers = JsonNumbers::kBoth);

}  // namespace tailtrace
