// Where functions begin and end by the tables for unwinding the stack (section .eh_frame), which
// files without symbols have, too.
//
// Threading: functions without state.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tailtrace {

// What a frame description entry (FDE) is of, in the file's own addresses: a function, or what is
// put apart of one.
struct EhFrame {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Of all such entries, by begin. Entries that are damaged, or whose addresses are not relative to
// where they stand, as compilers write them, are left out.
std::vector<EhFrame> eh_frames(Elf* elf);

// The one that holds an address; null: none.
const EhFrame* eh_frame_at(const std::vector<EhFrame>& frames, std::uint64_t address);

}  // namespace tailtrace
