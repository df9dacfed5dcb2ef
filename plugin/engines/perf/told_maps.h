// ToldMaps: a process's memory map as the kernel tells of it, change by change, and what was mapped
// before (decoder/code/former_maps.h): libraries may come and go between two looks at the map.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/code/former_maps.h"
#include "decoder/code/maps_line.h"
#include "decoder/perf/events.h"

namespace tailtrace::perf {

// How /proc/PID/maps shows what was mapped.
std::string maps_line_of(const MmapEvent& map);

class ToldMaps {
 public:
  using Lines = std::vector<std::string>;  // of /proc/PID/maps
  using Ranges = std::vector<FormerMaps::Range>;

  // The lines of code in a map that are not known, or others.
  Lines new_code(std::string_view maps) const;

  // Lines, none of which overlaps another, came in the place of what was there. Returns as
  // FormerMaps::see.
  Ranges put(const Lines& lines, Epoch next);

  // The map as it is now: what is not there any more is gone.
  Ranges see(std::string_view maps, Epoch next);

  std::string former() const { return former_.text(); }

 private:
  bool matters(const MapsLine& line) const;

  FormerMaps former_;
  // Lines of files, by address. Generated code, of which there may be any number, is among them
  // only where a file is or was.
  std::map<std::uint64_t, std::string> lines_;
};

}  // namespace tailtrace::perf
