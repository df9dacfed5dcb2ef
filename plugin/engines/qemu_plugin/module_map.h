// ModuleMap: which files the program's code comes from, for names of functions later. It writes to
// the process's file `maps` what was mapped where, in the words of /proc/PID/maps, whenever code is
// met that lies in none of the mappings known so far.
//
// Lines are only ever added: of two that overlap, the later one holds. The file is filled up with
// zeros.
//
// Threading: one thread at a time; the caller holds a lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plugin/engines/qemu_plugin/shared_file.h"

namespace tailtrace {

class ModuleMap {
 public:
  // Code at the guest's address `pc` is about to be executed by the process that `folder` is of.
  // What lies at the guest's address 0 lies at `guest_base` in our memory.
  void see(std::uint64_t pc, std::uint64_t guest_base, const std::string& folder);

  // Code has changed: what is mapped where may have, too.
  void doubt() { known_.clear(); }

 private:
  static constexpr std::size_t kMaxText_bytes = 4 << 20;

  bool knows(std::uint64_t pc) const;
  void begin(const std::string& folder);
  void read_maps(std::uint64_t guest_base);
  void add(const std::string& line);

  std::map<std::uint64_t, std::uint64_t> known_;  // mappings, named or not: begin to end
  std::string text_;                              // what the file holds
  GrowingFile file_;
  std::string folder_;  // of file_
};

}  // namespace tailtrace
