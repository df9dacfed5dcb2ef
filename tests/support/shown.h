// What a history shows of records: executed instructions, and its gaps apart.
//
// Threading: a pure function.
#pragma once

#include <memory>
#include <vector>

#include "decoder/history/gap.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

struct Shown {
  std::vector<Address> executed;
  std::vector<GapReason> gaps;
};

Shown show(std::vector<BranchRecord> records, std::shared_ptr<const CodeImage> code);

}  // namespace tailtrace
