// DebugInfo: source lines and functions of one module out of its DWARF.
//
// Units are indexed by their addresses when it is opened, and read when an address of theirs is
// asked for. Addresses are the file's own. What the file claims is limited; what cannot be read is
// as if it were not there.
//
// Threading: one thread at a time.
#pragma once

#include <elfutils/libdw.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decoder/history/symbolizer.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/packed_sections.h"
#include "decoder/symbols/statements.h"

namespace tailtrace {

struct DebugFunction {
  std::uint64_t entry = 0;
  Dwarf_Die die{};
  std::string linkage_name;
  std::string source_file;
};

class DebugInfo {
 public:
  // The file's own debug information; nothing when it has none. The file must outlive it.
  static std::optional<DebugInfo> open(const ElfFile& file);

  // The file that should have what units of this one lack, and has not; empty when none is missed.
  // Only the first such unit is looked at.
  const std::string& missing_file() const { return missing_file_; }

  std::optional<SourceLine> line_at(std::uint64_t address);

  // As Symbolizer::line_entries.
  std::vector<std::uint64_t> line_entries(std::uint64_t address, std::string_view file,
                                          unsigned line);

  // All lines that have code in the unit that covers the address, each once; null when none does.
  // Lives as long as this.
  const std::vector<SourceLine>* lines_of_unit(std::uint64_t address);
  // As Symbolizer's.
  std::vector<SourceLine> lines_beginning_at(std::uint64_t address);

  // Shows all functions, as long as it is wanted, and all lines with code, or those at which a
  // statement begins. A function that is only inlined, or was left out by the linker, has no entry.
  // Returns false when there are too many to look at, or no more are wanted.
  bool each_function(const std::function<bool(const DebugFunction&)>& show);
  bool each_line(bool of_statements, const std::function<void(const SourceLine&)>& show);

  // The inlined functions that an address is in, innermost first; names as the linker has them.
  std::vector<InlinedFunction> inlined_at(std::uint64_t address);

  // Where functions were put into the one that covers the address, outer ones first. Of names they
  // have the linker's.
  std::vector<InlinedPlace> inlined_into(std::uint64_t address);

  // What holds for every address of [begin, end), a stretch around the one asked for.
  struct Cover {
    const DebugFunction* function = nullptr;  // null: none covers it; lives as long as this
    std::uint64_t begin = 0;
    std::uint64_t end = ~0ull;
  };
  Cover cover(std::uint64_t address);

 private:
  static constexpr std::size_t kMaxUnits = 1 << 20;
  static constexpr std::size_t kMaxRangesOfUnit = 1 << 20;
  static constexpr std::size_t kMaxLinesOfUnit = 1 << 22;
  static constexpr std::size_t kMaxDiesOfUnit = 1 << 24;
  // Of all units, where all are looked at.
  static constexpr std::size_t kMaxDies = 1 << 25, kMaxLines = 1 << 25;
  static constexpr std::size_t kMaxKnownLines = 1 << 16;

  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  struct Stretch {
    std::uint64_t begin, end;
    std::uint32_t index;  // of a unit, or of a function of one
  };
  struct Unit {
    Dwarf_Off die = 0;
    bool read = false;
    std::vector<DebugFunction> functions;
    std::vector<Stretch> stretches;                  // of functions, ordered, apart from each other
    std::unique_ptr<std::vector<SourceLine>> lines;  // null: not asked for yet
    std::unique_ptr<std::vector<Statement>> statements;  // the same
    std::unique_ptr<std::vector<Statement>> by_address;  // the same in that order
  };

  DebugInfo(Dwarf* dwarf, std::string folder) : dwarf_(dwarf), folder_(std::move(folder)) {}
  void index_units();
  std::vector<bool> add_listed_ranges();
  static void order(std::vector<Stretch>& stretches);
  static Cover look_up(const std::vector<Stretch>& stretches, std::uint64_t address,
                       const Stretch** found);
  void note_missing_file(Dwarf_Die& skeleton);
  std::optional<Dwarf_Die> functions_of(const Unit& unit);
  void read_unit(Unit& unit);
  std::vector<SourceLine> read_lines(const Unit& unit);
  std::vector<SourceLine> lines_of_statements(const Unit& unit);
  static void add_function(Dwarf_Die& die, Unit& unit);
  InlinedFunction inlined_by(Dwarf_Die& die, Dwarf_Die& unit);
  static void add_inlined(Dwarf_Die parent, std::vector<InlinedPlace>& places,
                          std::size_t& dies_left, int depth);
  std::optional<SourceLine> find_line(std::uint64_t address);
  const std::string& whole_path(Dwarf_Die& unit, const char* file);

  std::vector<UnpackedBytes> unpacked_;
  std::unique_ptr<Dwarf, EndDwarf> dwarf_;  // reads them
  std::string folder_;                      // of the file
  std::string missing_file_;
  std::vector<Unit> units_;
  std::vector<Stretch> stretches_;            // of units
  std::map<const char*, std::string> paths_;  // by the name that libdw keeps
  // Lists of calls ask for the same over and over.
  std::unordered_map<std::uint64_t, std::optional<SourceLine>> known_lines_;
};

}  // namespace tailtrace
