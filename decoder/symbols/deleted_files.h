// Files that a process has mapped and that are at no path: they were deleted or replaced after
// that, or are memory (memfd_create(2)). As long as the process lives the kernel has them, and
// gives them to some: the program's own to whoever may trace it, what it has open as well, and all
// others to whoever has CAP_CHECKPOINT_RESTORE.
//
// Threading: functions without state; they look into /proc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/code/maps_line.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

struct DeletedFile {
  std::string id;    // device and inode, as a line of /proc/PID/maps has them
  std::string path;  // the same, "/usr/bin/server (deleted)"
  std::string at;    // where it can be opened as long as the process lives
};

// Of the programs and libraries that `maps`, of the process, says were deleted, those that can be
// opened now. Only lines that are wanted are looked at.
std::vector<DeletedFile> deleted_files(
    std::int32_t pid, std::string_view maps,
    const std::function<bool(const MapsLine&)>& is_wanted = [](const MapsLine&) { return true; });

// As parse_maps, where such files have the path that they had, and where they can be opened.
std::vector<Mapping> mappings_of(std::int32_t pid, std::string_view maps);

// The path of a file that parse_maps says was deleted, as `maps` had it; empty: it was not.
std::string_view deleted_path(const Mapping& mapping);

// `maps` is of an earlier time: with what the kernel says now of files that were deleted since.
std::string mark_deleted(std::int32_t pid, std::string maps);

}  // namespace tailtrace
