// Blocks of straight-line code, as GDB's BTS format wants them, from a thread's records.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "decoder/history/snapshot.h"

namespace tailtrace {

// Execution entered at `begin` and ran straight on; `end` is the first byte of the last
// instruction, which for the newest block is the one the thread stands at, not yet executed. A
// block whose end is below its begin is a deliberate gap: GDB shows it as one.
struct BtsBlock {
  Address begin, end;

  friend bool operator==(const BtsBlock&, const BtsBlock&) = default;
};

// Oldest first. The snapshot's last record is the kDisable where the thread stands.
std::vector<BtsBlock> bts_blocks(const ThreadSnapshot& snapshot);

}  // namespace tailtrace
