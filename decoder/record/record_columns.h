// The fields of BranchRecord as columns, for programs that read tables: one list for all of them.
// RECORD.md says what they mean.
//
// Threading: constants.
#pragma once

#include <array>
#include <cstddef>

#include "decoder/record/branch_record.h"

namespace tailtrace {

// An unsigned, little-endian number in each record.
struct RecordColumn {
  const char* name;
  std::size_t offset_bytes;
  std::size_t size_bytes;
};

constexpr std::array<RecordColumn, 7> kRecordColumns = {{
    {"from", offsetof(BranchRecord, from), sizeof(BranchRecord::from)},
    {"to", offsetof(BranchRecord, to), sizeof(BranchRecord::to)},
    {"time", offsetof(BranchRecord, time), sizeof(BranchRecord::time)},
    {"insns", offsetof(BranchRecord, insns), sizeof(BranchRecord::insns)},
    {"kind", offsetof(BranchRecord, kind), sizeof(BranchRecord::kind)},
    {"flags", offsetof(BranchRecord, flags), sizeof(BranchRecord::flags)},
    {"extra", offsetof(BranchRecord, extra), sizeof(BranchRecord::extra)},
}};

}  // namespace tailtrace
