#include "decoder/history/interruption.h"

namespace tailtrace {

std::optional<BranchRecord> interruption_before(const History& history, const HistoryItem& item) {
  if (!item.begins_run || item.record.value == 0) return std::nullopt;
  std::optional<BranchRecord> before = history.record({item.record.value - 1});
  const bool led_here =
      before && is_interruption(before->kind) && before->to == item.instruction.address;
  return led_here ? before : std::nullopt;
}

}  // namespace tailtrace
