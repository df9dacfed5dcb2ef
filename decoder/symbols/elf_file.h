// ElfFile: what an ELF file's symbol tables name, and where its segments go.
//
// Files are checked, not believed: what lies outside of the file, wraps around or exceeds a limit
// is left out. Addresses here are the file's own; adding the bias of the place where it was loaded
// gives those of a process.
//
// Threading: immutable once made.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

struct ElfSymbol {
  std::uint64_t value = 0;
  std::uint64_t size_bytes = 0;  // 0: not known
  std::string name;              // as the linker knows it; "NAME@plt" for stubs of the linker's
  std::uint64_t section_end = ~0ull;  // a symbol without a size reaches no further
  bool is_resolver = false;           // STT_GNU_IFUNC (indirect_functions.h)
  bool is_old = false;                // a version of the name that nothing new is linked with
};

struct ElfSegment {
  std::uint64_t address = 0;
  std::uint64_t file_offset_bytes = 0;
  std::uint64_t size_bytes = 0;  // in the file
  bool executable = false;
};

class ElfFile {
 public:
  static constexpr std::size_t kMaxSymbols = std::size_t{1} << 24;

  // Errors: it cannot be read; kBadInput when it is no ELF file of x86-64.
  static Result<ElfFile> open(const std::string& path);

  // What lies in memory as the vDSO does, under a name for people. What is missing may be its end,
  // and none of its section headers is looked at. Errors: as open().
  static Result<ElfFile> of_image(const std::string& name, Bytes image);

  ElfFile(ElfFile&&) noexcept = default;
  ElfFile& operator=(ElfFile&&) noexcept = default;
  ~ElfFile();

  const std::string& path() const { return path_; }
  Elf* elf() const { return elf_.get(); }
  int fd() const { return fd_.get(); }

  // Functions and labels in executable sections, ordered by value, then by name.
  std::vector<ElfSymbol> symbols() const;
  // Those of its MiniDebugInfo, in the same order: the dynamic linker's are not among them.
  std::vector<ElfSymbol> packed_symbols() const;
  // Variables and labels in sections of data, in the same order.
  std::vector<ElfSymbol> variables() const;

  // The value of a symbol that the dynamic symbol table defines, of data as well.
  std::optional<std::uint64_t> dynamic_symbol(std::string_view name) const;

  // The loadable segments.
  const std::vector<ElfSegment>& segments() const { return segments_; }

  // What follows an address in its segment of code; empty when it is in none.
  ByteSpan code_at(std::uint64_t address) const;

  // Hexadecimal; empty when it has none.
  std::string build_id() const;

  // The name of its separate debug file (section .gnu_debuglink); empty when it names none.
  std::string debug_link() const;

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  explicit ElfFile(std::string path) : path_(std::move(path)) {}
  Result<void> begin();
  void read_segments();

  std::string path_;
  UniqueFd fd_;
  Bytes image_;  // empty where there is a file
  std::unique_ptr<Elf, EndElf> elf_;
  std::vector<ElfSegment> segments_;
};

}  // namespace tailtrace
