// ProcessSymbols: names and lines of a process's addresses, from the files it has mapped, and from
// those in which it named the code that it generated.
//
// Those of the vDSO are in its code. A file is read when an address of it is asked for. A file that
// cannot be read, or is not what was mapped, gives no names; problems() tells, and so is whoever
// asked to be told.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/history/symbolizer.h"
#include "decoder/symbols/generated_functions.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {

// What stands for the module of functions that the program generated.
constexpr char kGeneratedModule[] = "[jit]";

class ProcessSymbols : public Symbolizer {
 public:
  // REQUIRES: mappings as parse_maps orders them. `perf_map` is the path of the process's; empty:
  // there is none. `tell` is called for each problem, once, when it is met.
  explicit ProcessSymbols(std::vector<Mapping> mappings, std::string perf_map = {},
                          std::function<void(const Error&)> tell = {});

  // Tells functions apart that were generated in one place, one after the other, and what the vDSO
  // calls its own. The code is the history's.
  void know_code(std::shared_ptr<const CodeImage> code) { code_ = std::move(code); }
  // For debug information that is not installed. Before the first question.
  void fetch_debug_files_by(DebugFetch fetch) { fetch_ = std::move(fetch); }

  const Function& function_at(Address address) override;
  const Function& function_in(Address address, Epoch when) override;
  std::vector<Function> also_named(Address entry) override;
  std::vector<InlinedFunction> inlined_at(Address address) override;
  std::vector<InlinedPlace> inlined_into(Address address) override;
  std::optional<SourceLine> line_at(Address address) override;
  std::vector<Address> line_entries(Address address, std::string_view file, unsigned line) override;
  std::optional<std::uint64_t> address_in_file(Address address) override;
  const std::vector<SourceLine>* lines_of_unit(Address address) override;

  const std::vector<Mapping>& mappings() const { return mappings_; }

  // All that is named in the files of which code is known, whatever of it was executed: functions,
  // some more than once, as long as it is wanted, and lines with code, or those at which a
  // statement begins. What is only inlined has nothing but names. Returns false when there are too
  // many to look at, or no more are wanted.
  bool each_function(const std::function<bool(const Function&)>& show);
  bool each_line(bool of_statements, const std::function<void(const SourceLine&)>& show);
  struct Module {
    std::string_view path;
    ModuleSymbols* symbols = nullptr;  // null: it cannot be read
  };
  // Those files. (Under qemu others are mapped, too: its own.)
  std::vector<Module> modules();
  // Whether a file is mapped there, or code is known.
  bool has_anything(Address address) const;

  // Why files gave no names, so far.
  const std::vector<Error>& problems() const { return problems_; }

 private:
  struct Place {
    ModuleSymbols* module = nullptr;  // null: no file that can be read
    std::uint64_t bias = 0;
    const Mapping* mapping = nullptr;  // null: nothing is mapped there
    Address begin, end;                // where this holds
  };

  Place place_of(Address address);
  ModuleSymbols* module_of(const Mapping& mapping);
  Result<std::unique_ptr<ModuleSymbols>> open_module(const Mapping& mapping) const;
  void note_deleted(const Mapping& mapping);
  // Where a module is named, that it is nameless is what is told.
  void add_problem(Error problem, const std::string& module = {});
  const GeneratedFunctions& generated();
  static Function function_of(const Place& place, const GeneratedFunctions::Cover& cover);
  static Function replaced_by(const Place& place, const GeneratedFunctions::Cover& cover);
  bool had_other_code(const GeneratedFunctions::Cover& cover, Address address, Epoch when) const;
  const Function& find_replaced(Address address, Epoch when);
  Function make_function(Address address);

  std::vector<Mapping> mappings_;
  std::string perf_map_;
  std::function<void(const Error&)> tell_;
  std::optional<GeneratedFunctions> generated_;                    // read when it is needed
  std::map<std::string, std::unique_ptr<ModuleSymbols>> modules_;  // null: cannot be read
  std::vector<Error> problems_;
  std::map<Address, Function> functions_;  // by begin; apart from each other
  const Function* last_ = nullptr;

  DebugFetch fetch_;
  std::shared_ptr<const CodeImage> code_;
  // Of generated functions that took each other's place: by begin and which one it is, and which
  // it was in an epoch.
  std::map<std::pair<Address, std::size_t>, Function> replaced_;
  std::map<std::pair<Address, Epoch>, const Function*> in_epochs_;
};

}  // namespace tailtrace
