// Symbolizer: names and source lines of code addresses, wherever they come from.
//
// The history needs names for calls and listings but does not read ELF files; whoever does hands it
// one of these. A name that is not known is empty, never made up.
//
// Threading: one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace {

// What holds for every address of [begin, end), a stretch around the one asked for.
struct Function {
  Address begin;
  Address end;
  Address entry;            // the function's first instruction; 0: not known
  std::string name;         // for people: demangled; empty: not known
  std::string symbol_name;  // in the symbol table; empty: not there
  std::string debug_name;   // in the debug information, as the linker knows it; empty: not there
  std::string source_file;  // in the debug information; empty: not there
  std::string module;       // path of the file it was loaded from; empty: not known
  // It chooses which code is called by its symbol's name (STT_GNU_IFUNC), and is not that itself.
  bool is_resolver = false;

  bool known() const { return !symbol_name.empty() || !debug_name.empty(); }
  // The one that GDB goes by.
  const std::string& plain_name() const { return debug_name.empty() ? symbol_name : debug_name; }
};

struct SourceLine {
  std::string_view file;  // with its folder where that is known; lives as long as the symbolizer
  unsigned line = 0;
};

// Of the code as it was last.
constexpr Epoch kNewestEpoch{~0u};

// A function that the compiler put into another one, at the address asked for.
struct InlinedFunction {
  std::string name;            // for people
  std::string_view call_file;  // where it is called; empty: not known. Lives as long as `file` of
  unsigned call_line = 0;      // a SourceLine
};

// A place of one function into which the compiler put another.
struct InlinedPlace {
  Function function;  // the other: its names, and at `entry` its first instruction in this place
  std::vector<std::pair<Address, Address>> ranges;  // of its code there: [begin, end) each

  bool holds(Address address) const {
    for (auto [begin, end] : ranges)
      if (begin <= address && address < end) return true;
    return false;
  }
};

class Symbolizer {
 public:
  virtual ~Symbolizer() = default;

  // Always answers; the reference lives as long as the symbolizer.
  virtual const Function& function_at(Address address) = 0;

  // The same for code as it was in an epoch of the history (decoder/code/code_image.h): a program
  // that generates code makes one function in the place of another, and one that loads libraries
  // may have several in one place.
  virtual const Function& function_in(Address address, Epoch) { return function_at(address); }

  // What follows is of the code as it was in an epoch, too.

  // Where the function that an address is of begins, by the tables for unwinding the stack, which
  // files without names have, too: its frame description entry (FDE) does. Nothing when they do not
  // say. What is put apart of a function has an entry of its own.
  virtual std::optional<Address> fde_begin(Address, Epoch = kNewestEpoch) { return std::nullopt; }

  // What else the function is that begins at an address: the other names that symbol tables have
  // for it, and those of functions that may be this one in this run, as memcpy is one of several
  // (STT_GNU_IFUNC). Of their addresses only `entry` is of use.
  virtual std::vector<Function> also_named(Address, Epoch = kNewestEpoch) { return {}; }

  // The inlined functions that an address is in, innermost first; function_at() is what they are
  // in.
  virtual std::vector<InlinedFunction> inlined_at(Address, Epoch = kNewestEpoch) { return {}; }

  // All such places of the function that an address is of; those inside of others behind these.
  virtual std::vector<InlinedPlace> inlined_into(Address, Epoch = kNewestEpoch) { return {}; }

  virtual std::optional<SourceLine> line_at(Address address, Epoch = kNewestEpoch) = 0;

  // Where a debugger's breakpoints on a line are in the function that an address is of: at the
  // line's first statement in each block of it. The file's path may lack its begin.
  virtual std::vector<Address> line_entries(Address, std::string_view, unsigned,
                                            Epoch = kNewestEpoch) {
    return {};
  }

  // The address as the file that was loaded there has it, which objdump and addr2line show; nothing
  // when that is not known.
  virtual std::optional<std::uint64_t> address_in_file(Address, Epoch = kNewestEpoch) {
    return std::nullopt;
  }

  // The code from an address on as the file has it that was loaded there, whether or not it was
  // executed; empty when that is not known. Lives as long as the symbolizer.
  virtual ByteSpan code_in_file(Address, Epoch = kNewestEpoch) { return {}; }

  // All source lines that have code in the translation unit that an address is of, each once; null
  // when nobody knows. The same pointer for the whole unit; lives as long as the symbolizer.
  virtual const std::vector<SourceLine>* lines_of_unit(Address, Epoch = kNewestEpoch) {
    return nullptr;
  }

  // The lines of which a statement begins right at an address: optimizers have several do so.
  virtual std::vector<SourceLine> lines_beginning_at(Address, Epoch = kNewestEpoch) { return {}; }
};

// Knows nothing.
class NoSymbols : public Symbolizer {
 public:
  const Function& function_at(Address) override { return everywhere_; }
  std::optional<SourceLine> line_at(Address, Epoch) override { return std::nullopt; }

 private:
  Function everywhere_{{}, {~0ull}, {}, {}, {}, {}, {}, {}};
};

// A place as a debugger is asked for it: "name+0x12", "name" at its entry; "module+0x1234" in code
// of a file without names, by the file's own addresses; "" when nothing is known.
std::string place_text(Symbolizer& symbols, Address address, Epoch when = kNewestEpoch);

// The last component of a path.
std::string_view base_name(std::string_view path);

}  // namespace tailtrace
