#include "decoder/symbols/debug_info.h"

#include <dwarf.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "decoder/history/location.h"
#include "decoder/symbols/blocks.h"
#include "decoder/symbols/split_unit.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxFunctionsOfUnit = 1 << 22;
// Where variables are, how frames are unwound, and macros: nothing that is asked here. They may be
// large.
constexpr std::string_view kUnusedSections[] = {
    ".debug_loc", ".debug_loclists", ".debug_frame", ".debug_macro", ".debug_macinfo",
};

std::string text_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute));
  return text == nullptr ? "" : text;
}

// The folder that a unit's paths are relative to. libdw would open the file that a skeleton names.
std::string compiled_in(Dwarf_Die& unit) {
  return is_skeleton(unit) ? own_text(unit, DW_AT_comp_dir) : text_of(unit, DW_AT_comp_dir);
}

// The name the linker knows it by: in C its own.
std::string linkage_name(Dwarf_Die& die) {
  for (unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name})
    if (std::string text = text_of(die, name); !text.empty()) return text;
  return {};
}

// The source file that an attribute, of a die or of what it is an instance of, names; null: none.
// (dwarf_decl_file ends the process where a split unit has no table of lines.)
const char* file_in(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word index = 0;
  if (dwarf_formudata(dwarf_attr_integrate(&die, name, &attribute), &index) != 0) return nullptr;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_cu_die(attribute.cu, &unit, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) ==
          nullptr ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count)
    return nullptr;
  // The first file of tables before DWARF 5.
  constexpr std::string_view kNone = "???";
  const char* file = dwarf_filesrc(files, index, nullptr, nullptr);
  return file == nullptr || file == kNone ? nullptr : file;
}

std::uint64_t number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  return dwarf_formudata(dwarf_attr(&die, name, &attribute), &number) == 0 ? number : 0;
}

// Where the code of an inlined function is entered, which need not be where it begins.
std::uint64_t entry_of(Dwarf_Die& die, std::uint64_t begin) {
  Dwarf_Attribute attribute;
  Dwarf_Addr entry = 0;
  Dwarf_Word offset = 0;
  if (dwarf_attr(&die, DW_AT_entry_pc, &attribute) == nullptr) return begin;
  if (dwarf_formaddr(&attribute, &entry) == 0) return entry;
  return dwarf_formudata(&attribute, &offset) == 0 ? begin + offset : begin;
}

InlinedPlace place_of(Dwarf_Die& die) {
  InlinedPlace place;
  each_range(die, kMaxRangesOfDie, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    place.ranges.emplace_back(Address{begin}, Address{end});
  });
  if (place.ranges.empty()) return place;
  place.function.entry = {entry_of(die, place.ranges.front().first.value)};
  place.function.debug_name = linkage_name(die);
  if (const char* file = file_in(die, DW_AT_decl_file)) place.function.source_file = file;
  return place;
}

// Its first instruction; 0: it has no code of its own.
std::uint64_t entry_of_code(Dwarf_Die& die) {
  std::uint64_t entry = 0;
  each_range(die, 1, [&](Dwarf_Addr begin, Dwarf_Addr) { entry = begin; });
  return entry;
}

// Compilers split what is rarely executed off a function, and linkers put it before the rest: of a
// line that is in both parts it is not the begin.
std::vector<Statement> rare_parts_last(const DebugFunction* function,
                                       std::span<const Statement> statements) {
  std::vector<Statement> ordered(statements.begin(), statements.end());
  if (function == nullptr) return ordered;
  Dwarf_Die die = function->die;
  std::uint64_t low = 0, high = ~0ull;
  each_range(die, kMaxRangesOfDie, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (begin <= function->entry && function->entry < end) low = begin, high = end;
  });
  std::ranges::stable_partition(
      ordered, [&](const Statement& s) { return low <= s.address && s.address < high; });
  return ordered;
}

DebugFunction function_of(Dwarf_Die& die, std::uint64_t entry) {
  const char* file = file_in(die, DW_AT_decl_file);
  return {entry, die, linkage_name(die), file == nullptr ? "" : file};
}

// What may hold functions; anything else is skipped with all it holds.
bool may_hold_functions(int tag) {
  switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
      return true;
    default:
      return false;
  }
}

// Calls visit(die) for all functions below, as long as any are left.
template <class Visit>
void each_subprogram(Dwarf_Die parent, std::size_t& dies_left, int depth, const Visit& visit) {
  Dwarf_Die die;
  if (depth == kMaxDebugDepth || dwarf_child(&parent, &die) != 0) return;
  do {
    if (dies_left == 0) return;
    --dies_left;
    const int tag = dwarf_tag(&die);
    if (tag == DW_TAG_subprogram) visit(die);
    if (may_hold_functions(tag)) each_subprogram(die, dies_left, depth + 1, visit);
  } while (dwarf_siblingof(&die, &die) == 0);
}

}  // namespace

std::optional<DebugInfo> DebugInfo::open(const ElfFile& file) {
  std::vector<UnpackedBytes> unpacked = unpack_sections(file.elf(), kUnusedSections);
  Dwarf* dwarf = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (dwarf == nullptr) return std::nullopt;
  DebugInfo info(dwarf, std::filesystem::path(file.path()).parent_path());
  info.unpacked_ = std::move(unpacked);
  info.index_units();
  if (info.stretches_.empty()) return std::nullopt;
  return info;
}

void DebugInfo::index_units() {
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  std::uint8_t type = 0;
  bool has_skeleton = false;
  while (units_.size() < kMaxUnits &&
         dwarf_get_units(dwarf_.get(), unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    if (type == DW_UT_skeleton && !std::exchange(has_skeleton, true)) note_missing_file(die);
    units_.emplace_back().die = dwarf_dieoffset(&die);
  }
  const std::vector<bool> listed = add_listed_ranges();
  for (std::uint32_t index = 0; index < units_.size(); ++index) {
    if (listed[index] || dwarf_offdie(dwarf_.get(), units_[index].die, &die) == nullptr) continue;
    each_range(die, kMaxRangesOfUnit, [&](Dwarf_Addr begin, Dwarf_Addr end) {
      stretches_.push_back({begin, end, index});
    });
  }
  order(stretches_);
}

void DebugInfo::note_missing_file(Dwarf_Die& skeleton) {
  if (!split_unit(skeleton, folder_)) missing_file_ = split_file(skeleton);
}

// The list of all units' addresses that compilers write beside them spares reading each of these.
// Some compilers write none: which units are in it is the value.
std::vector<bool> DebugInfo::add_listed_ranges() {
  std::vector<bool> listed(units_.size());
  Dwarf_Aranges* ranges = nullptr;
  std::size_t count = 0;
  if (dwarf_getaranges(dwarf_.get(), &ranges, &count) != 0) return listed;
  for (std::size_t i = 0; i < count; ++i) {
    Dwarf_Addr begin = 0;
    Dwarf_Word length = 0;
    Dwarf_Off die = 0;
    if (dwarf_getarangeinfo(dwarf_onearange(ranges, i), &begin, &length, &die) != 0) continue;
    auto unit = std::ranges::lower_bound(units_, die, {}, &Unit::die);
    // Code that the linker left out ends up at 0.
    if (unit == units_.end() || unit->die != die || begin == 0 || length > ~begin) continue;
    auto index = static_cast<std::uint32_t>(unit - units_.begin());
    if (length != 0) stretches_.push_back({begin, begin + length, index});
    listed[index] = true;
  }
  return listed;
}

// Ordered and apart: where two overlap, the one that begins first keeps what they share. Of several
// names for the same stretch, as assemblers give, the last counts, as it does for GDB.
void DebugInfo::order(std::vector<Stretch>& stretches) {
  std::stable_sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.index < b.index;
  });
  std::size_t kept = 0;
  std::uint64_t end = 0;
  for (Stretch& stretch : stretches) {
    if (kept != 0 && stretch.begin == stretches[kept - 1].begin && stretch.end == end) {
      stretches[kept - 1] = stretch;
      continue;
    }
    stretch.begin = std::max(stretch.begin, end);
    if (stretch.begin >= stretch.end) continue;
    end = stretch.end;
    stretches[kept++] = stretch;
  }
  stretches.resize(kept);
}

DebugInfo::Cover DebugInfo::look_up(const std::vector<Stretch>& stretches, std::uint64_t address,
                                    const Stretch** found) {
  Cover cover;
  *found = nullptr;
  auto after = std::upper_bound(stretches.begin(), stretches.end(), address,
                                [](std::uint64_t a, const Stretch& s) { return a < s.begin; });
  if (after != stretches.end()) cover.end = after->begin;
  if (after == stretches.begin()) return cover;
  const Stretch& stretch = *--after;
  cover.begin = stretch.end;
  if (address >= stretch.end) return cover;
  *found = &stretch;
  cover.begin = stretch.begin;
  cover.end = stretch.end;
  return cover;
}

DebugInfo::Cover DebugInfo::cover(std::uint64_t address) {
  const Stretch* found = nullptr;
  Cover outer = look_up(stretches_, address, &found);
  if (found == nullptr) return outer;
  Unit& unit = units_[found->index];
  if (!unit.read) read_unit(unit);
  Cover inner = look_up(unit.stretches, address, &found);
  inner.begin = std::max(inner.begin, outer.begin);
  inner.end = std::min(inner.end, outer.end);
  if (found != nullptr) inner.function = &unit.functions[found->index];
  return inner;
}

std::vector<InlinedFunction> DebugInfo::inlined_at(std::uint64_t address) {
  std::vector<InlinedFunction> found;
  const DebugFunction* function = cover(address).function;
  if (function == nullptr) return found;
  Dwarf_Die die = function->die, unit;
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return found;
  for (Dwarf_Die& block : blocks_at(die, address))
    if (dwarf_tag(&block) == DW_TAG_inlined_subroutine) found.push_back(inlined_by(block, unit));
  std::reverse(found.begin(), found.end());
  return found;
}

InlinedFunction DebugInfo::inlined_by(Dwarf_Die& die, Dwarf_Die& unit) {
  InlinedFunction inlined{linkage_name(die), {}, 0};
  const char* file = file_in(die, DW_AT_call_file);
  if (file == nullptr) return inlined;
  inlined.call_file = whole_path(unit, file);
  inlined.call_line = static_cast<unsigned>(number_of(die, DW_AT_call_line));
  return inlined;
}

std::vector<InlinedPlace> DebugInfo::inlined_into(std::uint64_t address) {
  std::vector<InlinedPlace> places;
  const DebugFunction* function = cover(address).function;
  if (function == nullptr) return places;
  std::size_t dies_left = kMaxDiesOfUnit;
  add_inlined(function->die, places, dies_left, 0);
  return places;
}

void DebugInfo::add_inlined(Dwarf_Die parent, std::vector<InlinedPlace>& places,
                            std::size_t& dies_left, int depth) {
  Dwarf_Die die;
  if (depth == kMaxDebugDepth || dwarf_child(&parent, &die) != 0) return;
  do {
    if (dies_left == 0) return;
    --dies_left;
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) continue;
    if (tag == DW_TAG_inlined_subroutine)
      if (InlinedPlace place = place_of(die); !place.ranges.empty())
        places.push_back(std::move(place));
    add_inlined(die, places, dies_left, depth + 1);
  } while (dwarf_siblingof(&die, &die) == 0);
}

std::optional<SourceLine> DebugInfo::line_at(std::uint64_t address) {
  if (known_lines_.size() == kMaxKnownLines) known_lines_.clear();
  auto [known, is_new] = known_lines_.try_emplace(address);
  if (is_new) known->second = find_line(address);
  return known->second;
}

std::optional<SourceLine> DebugInfo::find_line(std::uint64_t address) {
  const Stretch* found = nullptr;
  look_up(stretches_, address, &found);
  Dwarf_Die die;
  if (found == nullptr || dwarf_offdie(dwarf_.get(), units_[found->index].die, &die) == nullptr)
    return std::nullopt;
  Dwarf_Line* line = row_at(die, address);
  int number = 0;
  const char* file = line == nullptr ? nullptr : dwarf_linesrc(line, nullptr, nullptr);
  if (file == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return std::nullopt;
  return SourceLine{whole_path(die, file), static_cast<unsigned>(number)};
}

std::vector<std::uint64_t> DebugInfo::line_entries(std::uint64_t address, std::string_view file,
                                                   unsigned line) {
  const Stretch* found = nullptr;
  look_up(stretches_, address, &found);
  Dwarf_Die die;
  if (found == nullptr || dwarf_offdie(dwarf_.get(), units_[found->index].die, &die) == nullptr)
    return {};
  Unit& unit = units_[found->index];
  if (!unit.statements)
    unit.statements = std::make_unique<std::vector<Statement>>(statements_of(die));
  const DebugFunction* function = cover(address).function;
  std::vector<std::uint64_t> entries;
  std::set<Dwarf_Off> blocks;  // that have one
  const auto statements = std::ranges::equal_range(*unit.statements, line, {}, &Statement::line);
  for (const Statement& statement : rare_parts_last(function, statements)) {
    if (!ends_path(whole_path(die, statement.file), file)) continue;
    if (cover(statement.address).function != function) continue;
    if (blocks.insert(function == nullptr ? 0 : debugger_block_at(function->die, statement.address))
            .second)
      entries.push_back(statement.address);
  }
  return entries;
}

const std::vector<SourceLine>* DebugInfo::lines_of_unit(std::uint64_t address) {
  const Stretch* found = nullptr;
  look_up(stretches_, address, &found);
  if (found == nullptr) return nullptr;
  Unit& unit = units_[found->index];
  if (unit.lines == nullptr)
    unit.lines = std::make_unique<std::vector<SourceLine>>(read_lines(unit));
  return unit.lines.get();
}

std::vector<SourceLine> DebugInfo::lines_beginning_at(std::uint64_t address) {
  const Stretch* found = nullptr;
  look_up(stretches_, address, &found);
  std::vector<SourceLine> lines;
  Dwarf_Die die;
  if (found == nullptr || dwarf_offdie(dwarf_.get(), units_[found->index].die, &die) == nullptr)
    return lines;
  Unit& unit = units_[found->index];
  if (unit.by_address == nullptr) {
    unit.by_address = std::make_unique<std::vector<Statement>>(statements_of(die));
    std::ranges::stable_sort(*unit.by_address, {}, &Statement::address);
  }
  for (const Statement& one :
       std::ranges::equal_range(*unit.by_address, address, {}, &Statement::address))
    lines.push_back({whole_path(die, one.file), one.line});
  return lines;
}

bool DebugInfo::each_line(bool of_statements, const std::function<void(const SourceLine&)>& show) {
  std::size_t left = kMaxLines;
  for (const Unit& unit : units_) {
    const auto lines = of_statements ? lines_of_statements(unit) : read_lines(unit);
    if (lines.size() > left) return false;
    left -= lines.size();
    std::ranges::for_each(lines, show);
  }
  return true;
}

std::vector<SourceLine> DebugInfo::read_lines(const Unit& unit) {
  std::vector<SourceLine> all;
  Dwarf_Die die;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_offdie(dwarf_.get(), unit.die, &die) == nullptr ||
      dwarf_getsrclines(&die, &lines, &count) != 0)
    return all;
  for (std::size_t i = 0; i < std::min(count, kMaxLinesOfUnit); ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    int number = 0;
    bool ends = false;
    Dwarf_Addr address = 0;
    const char* file = dwarf_linesrc(line, nullptr, nullptr);
    if (file == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) continue;
    if (dwarf_lineendsequence(line, &ends) != 0 || ends) continue;
    // Code that the linker left out ends up at 0.
    if (dwarf_lineaddr(line, &address) != 0 || address == 0) continue;
    all.push_back({whole_path(die, file), static_cast<unsigned>(number)});
  }
  auto order = [](const SourceLine& a, const SourceLine& b) {
    return a.file != b.file ? a.file < b.file : a.line < b.line;
  };
  auto same = [](const SourceLine& a, const SourceLine& b) {
    return a.file == b.file && a.line == b.line;
  };
  std::sort(all.begin(), all.end(), order);
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

std::vector<SourceLine> DebugInfo::lines_of_statements(const Unit& unit) {
  std::vector<SourceLine> lines;
  Dwarf_Die die;
  if (dwarf_offdie(dwarf_.get(), unit.die, &die) == nullptr) return lines;
  for (const Statement& statement : statements_of(die))
    lines.push_back({whole_path(die, statement.file), statement.line});
  return lines;
}

// Compilers note paths as they were given them, relative to the folder they ran in.
const std::string& DebugInfo::whole_path(Dwarf_Die& unit, const char* file) {
  auto [known, added] = paths_.try_emplace(file, file);
  std::string folder = added && *file != '/' ? compiled_in(unit) : "";
  if (!folder.empty()) known->second = folder + "/" + file;
  return known->second;
}

// What functions are below: of a split unit the one in its own file.
std::optional<Dwarf_Die> DebugInfo::functions_of(const Unit& unit) {
  Dwarf_Die die;
  if (dwarf_offdie(dwarf_.get(), unit.die, &die) == nullptr) return std::nullopt;
  return is_skeleton(die) ? split_unit(die, folder_).value_or(die) : die;
}

void DebugInfo::read_unit(Unit& unit) {
  unit.read = true;
  std::optional<Dwarf_Die> die = functions_of(unit);
  std::size_t dies_left = kMaxDiesOfUnit;
  if (!die) return;
  each_subprogram(*die, dies_left, 0, [&unit](Dwarf_Die& function) {
    if (unit.functions.size() < kMaxFunctionsOfUnit) add_function(function, unit);
  });
  order(unit.stretches);
}

bool DebugInfo::each_function(const std::function<bool(const DebugFunction&)>& show) {
  std::size_t dies_left = kMaxDies;
  for (const Unit& unit : units_) {
    const std::optional<Dwarf_Die> die = functions_of(unit);
    if (!die) continue;
    each_subprogram(*die, dies_left, 0, [&](Dwarf_Die& function) {
      Dwarf_Attribute attribute;
      if (dwarf_attr(&function, DW_AT_declaration, &attribute) == nullptr &&
          !show(function_of(function, entry_of_code(function))))
        dies_left = 0;
    });
  }
  return dies_left != 0;
}

void DebugInfo::add_function(Dwarf_Die& die, Unit& unit) {
  const auto index = static_cast<std::uint32_t>(unit.functions.size());
  std::optional<std::uint64_t> entry;
  each_range(die, kMaxRangesOfDie, [&](Dwarf_Addr begin, Dwarf_Addr end) {
    if (!entry) entry = begin;
    unit.stretches.push_back({begin, end, index});
  });
  if (entry) unit.functions.push_back(function_of(die, *entry));
}

}  // namespace tailtrace
