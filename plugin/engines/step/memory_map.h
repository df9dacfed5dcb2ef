// The address space of a process as /proc/PID/maps shows it, as far as trust in code needs it.
//
// Threading: values, no shared state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

struct MemoryRegion {
  Address begin, end;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::string backing;             // offset, device and inode: what is mapped
  std::string file_id;             // device and inode
  std::uint64_t offset_bytes = 0;  // in the file
  std::string path;                // of the file; empty, or "[...]", when it is none

  friend bool operator==(const MemoryRegion&, const MemoryRegion&) = default;
};

class MemoryMap {
 public:
  // Lines that are not understood are left out.
  static MemoryMap parse(std::string_view text);
  // Empty when the process is gone or may not be looked at.
  static MemoryMap of_process(int pid);

  // What was parsed.
  const std::string& text() const { return text_; }

  // By address.
  const std::vector<MemoryRegion>& regions() const { return regions_; }

  // Null when nothing is mapped there.
  const MemoryRegion* find(Address address) const;

  // Whether the code there can only change through a system call of the process itself: it is
  // executable, not writable, and no other mapping of it is.
  bool is_stable_code(Address address) const;

 private:
  std::string text_;
  std::vector<MemoryRegion> regions_;  // by address
};

}  // namespace tailtrace
