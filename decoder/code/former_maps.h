// FormerMaps: which files a process had code of, and has no more. It is shown the process's memory
// map whenever that may be another one.
//
// What it knows is a text of lines, those of a file that was mapped in one place together, the one
// that went last first:
//
//     was 3 7f1200001000-7f1200002000 r-xp 00001000 fe:01 1234    /usr/lib/plugin.so
//
// The line as /proc/PID/maps had it stands behind the epoch of the code from which on other code is
// in its place; "-" when none came there, so that whatever was executed there was of this file. Who
// reads maps takes such a line for none of theirs.
//
// This is compiled into qemu's process, too; it needs no library.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/types.h"

namespace tailtrace {

constexpr std::string_view kFormerWord = "was ";

class FormerMaps {
 public:
  // Of all lines; those that went first are left out.
  static constexpr std::size_t kMaxText_bytes = std::size_t{1} << 20;

  struct Range {
    Address begin, end;
  };

  // Where a map does not tell which of it can be executed, whoever has seen what was tells. Then
  // all that cannot be written may be code that comes.
  using WasExecuted = std::function<bool(Range)>;
  explicit FormerMaps(WasExecuted was_executed = {}) : was_executed_(std::move(was_executed)) {}

  // `maps` is what /proc/PID/maps says now. Returns where code came in the place of code that is
  // gone. Where any did, all that is executed there from now on must be of epoch `next`, or later.
  std::vector<Range> see(std::string_view maps, Epoch next);

  // Whether code that is gone was in any of it.
  bool had_code_in(Range range) const;

  std::string text() const;

 private:
  struct Piece {
    std::uint64_t begin = 0, end = 0, file_offset_bytes = 0;
    bool is_code = false;
    std::string file;  // device, inode and path; empty: none
    std::string line;
  };
  // Pieces of one file, beside each other.
  struct Module {
    std::vector<Piece> pieces;
    std::optional<Epoch> until;  // nothing: no other code came there
  };

  std::optional<Piece> parse(std::string_view line) const;
  static bool is_in(const std::vector<Piece>& pieces, const Piece& piece, bool as_code);
  std::vector<Piece> code_and_files(std::string_view maps) const;
  void keep_gone(const std::vector<Piece>& before, const std::vector<Piece>& now);
  void replace(const Piece& piece, Epoch next, std::vector<Range>& ranges);
  static void note_deleted(Module& module, std::string_view path);
  static bool add_overlaps(const Module& module, const Piece& piece, std::vector<Range>& ranges);
  void cut();

  WasExecuted was_executed_;
  std::string last_;        // that was shown
  std::list<Module> gone_;  // the one that went last first
};

// The lines with other epochs: `change` is given each one's, and the line as it was in a map. Those
// for which it returns false are left out.
using ChangeEpoch = std::function<bool(std::optional<Epoch>& until, std::string_view line)>;
std::string with_epochs(std::string_view former, const ChangeEpoch& change);

// Takes the lines of former maps out of a text of maps.
std::string take_former_maps(std::string& maps);

}  // namespace tailtrace
