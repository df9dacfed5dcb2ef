// ModuleSymbols: all that is known of the names and lines of one file, its separate debug file
// included where that is installed. Nothing is fetched from anywhere, unless it is told how.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "decoder/symbols/debug_info.h"
#include "decoder/symbols/eh_frame.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/indirect_functions.h"
#include "decoder/symbols/symbol_table.h"

namespace tailtrace {

// Gets the debug file of a build id (hexadecimal) from elsewhere; returns its path. Errors: kGone
// when there is none; others when nobody knows.
using DebugFetch = std::function<Result<std::string>(const std::string& build_id)>;

class ModuleSymbols {
 public:
  // `fetch` is asked where no debug information is installed; may be empty. Errors: as
  // ElfFile::open. Missing debug information is none.
  static Result<std::unique_ptr<ModuleSymbols>> open(const std::string& path,
                                                     const DebugFetch& fetch = {});

  // The same of one that was opened.
  static std::unique_ptr<ModuleSymbols> of(ElfFile file, const DebugFetch& fetch = {});

  const ElfFile& file() const { return file_; }
  // The separate one; null: there is none.
  const ElfFile* debug_file() const { return debug_file_ ? &*debug_file_ : nullptr; }
  // As ElfFile's.
  const std::vector<ElfSegment>& segments() const { return file_.segments(); }

  // Everything but `module`, in the file's own addresses.
  Function function_at(std::uint64_t address);
  std::optional<std::uint64_t> fde_begin(std::uint64_t address);
  std::vector<Function> also_named(std::uint64_t entry);
  std::optional<SourceLine> line_at(std::uint64_t address);
  std::vector<std::uint64_t> line_entries(std::uint64_t address, std::string_view file,
                                          unsigned line);
  const std::vector<SourceLine>* lines_of_unit(std::uint64_t address);
  std::vector<SourceLine> lines_beginning_at(std::uint64_t address);
  std::vector<InlinedFunction> inlined_at(std::uint64_t address);
  std::vector<InlinedPlace> inlined_into(std::uint64_t address);

  // Shows all functions that it names, some more than once and not by all their names at a time, as
  // long as it is wanted, and all lines with code, or those at which a statement begins. What is
  // only inlined has nothing but names. Returns false when there are too many to look at, or no
  // more are wanted.
  bool each_function(const std::function<bool(const Function&)>& show);
  bool each_line(bool of_statements, const std::function<void(const SourceLine&)>& show);

  // Why its debug file could not be read or fetched, if so.
  const std::optional<Error>& debug_problem() const { return debug_problem_; }
  bool has_debug_info() const { return info_.has_value(); }
  // Of functions of its own, not only of stubs for those of others.
  bool has_names() const;
  // The file that the debug information is from; empty when there is none.
  std::string debug_path() const;

 private:
  explicit ModuleSymbols(ElfFile file) : file_(std::move(file)) {}
  const std::vector<IndirectFunction>& indirect();
  // Of what is shown there by another.
  std::vector<Function> other_names(const Function& shown, std::uint64_t entry);
  bool find_debug_file();
  void fetch_debug_file(const DebugFetch& fetch);
  bool open_debug_file(const std::string& path);
  void note_missing_file(const std::string& path);
  void note_unreadable(const std::string& path, Error error);

  ElfFile file_;
  std::optional<ElfFile> debug_file_;
  std::optional<DebugInfo> info_;  // refers to one of the files
  SymbolTable table_;
  // Nothing: not asked for yet.
  std::optional<std::vector<IndirectFunction>> indirect_;
  std::optional<std::vector<EhFrame>> frames_;
  std::optional<Error> debug_problem_;
};

}  // namespace tailtrace
