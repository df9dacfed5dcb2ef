// MapsLine: a line of /proc/PID/maps, as the kernel writes it (proc_pid_maps(5)):
//
//     55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:01 1234    /usr/bin/name with blanks
//
// This is compiled into qemu's process, too; it needs no library.
//
// Threading: values; functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tailtrace {

// Views of the line.
struct MapsLine {
  std::uint64_t begin = 0, end = 0;
  std::string_view access;  // "r-xp", and perhaps more
  std::uint64_t file_offset_bytes = 0;
  std::string_view backing;  // offset, device and inode: what is mapped
  std::string_view file_id;  // device and inode
  std::string_view name;     // the path of the file; "[vdso]" and the like are none; may be empty

  bool writable() const { return access[1] == 'w'; }
  bool executable() const { return access[2] == 'x'; }
  bool shared() const { return access[3] == 's'; }
  bool has_file() const { return name.starts_with('/'); }
};

// Nothing when it is no such line, as those between them in smaps are none.
std::optional<MapsLine> parse_maps_line(std::string_view line);

// Behind the path of a file that was deleted or replaced after it had been mapped, or of memory
// that never had a path (memfd_create(2)).
constexpr std::string_view kDeletedWord = " (deleted)";

// The path of the file that a line names, whatever words are before it; empty: none.
std::string_view path_in_maps_line(std::string_view line);

// Cuts off the next line of a text, and the next word of a line; words are separated by blanks.
std::string_view cut_line(std::string_view& text);
std::string_view cut_word(std::string_view& line);

// The lines of two texts without those that both begin with, and (but for one) both end with.
struct ChangedLines {
  std::string_view before, now;
};
ChangedLines changed_lines(std::string_view before, std::string_view now);

}  // namespace tailtrace
