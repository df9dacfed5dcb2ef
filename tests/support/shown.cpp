#include "tests/support/shown.h"

#include "decoder/history/history.h"

namespace tailtrace {

Shown show(std::vector<BranchRecord> records, std::shared_ptr<const CodeImage> code) {
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->records = std::move(records);
  snapshot->code = std::move(code);
  History history(snapshot);
  Shown shown;
  HistoryCursor cursor(history);
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    if (cursor.item().is_gap)
      shown.gaps.push_back(cursor.item().gap.reason);
    else
      shown.executed.push_back(cursor.item().instruction.address);
  }
  return shown;
}

}  // namespace tailtrace
