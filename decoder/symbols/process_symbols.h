// ProcessSymbols: names and lines of a process's addresses, from the files it has mapped, and from
// those in which it named the code that it generated.
//
// Where several libraries were in one place, one after the other, the epoch tells which it was.
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
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/history/snapshot.h"
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

  // Of the history: its code tells functions apart that were generated in one place, one after the
  // other, and what the vDSO calls its own; its former maps what libraries were there. Before the
  // first question.
  void know_history(const ThreadFrame& frame);
  // For debug information that is not installed. Before the first question.
  void fetch_debug_files_by(DebugFetch fetch) { fetch_ = std::move(fetch); }

  const Function& function_at(Address address) override;
  const Function& function_in(Address address, Epoch when) override;
  std::optional<Address> fde_begin(Address address, Epoch when = kNewestEpoch) override;
  std::vector<Function> also_named(Address entry, Epoch when = kNewestEpoch) override;
  std::vector<InlinedFunction> inlined_at(Address address, Epoch when = kNewestEpoch) override;
  std::vector<InlinedPlace> inlined_into(Address address, Epoch when = kNewestEpoch) override;
  std::optional<SourceLine> line_at(Address address, Epoch when = kNewestEpoch) override;
  std::vector<Address> line_entries(Address address, std::string_view file, unsigned line,
                                    Epoch when = kNewestEpoch) override;
  std::optional<std::uint64_t> address_in_file(Address address, Epoch when = kNewestEpoch) override;
  ByteSpan code_in_file(Address address, Epoch when = kNewestEpoch) override;
  const std::vector<SourceLine>* lines_of_unit(Address address, Epoch when = kNewestEpoch) override;
  std::vector<SourceLine> lines_beginning_at(Address address, Epoch when = kNewestEpoch) override;

  const std::vector<Mapping>& mappings() const { return mappings_; }
  // What was mapped in an epoch of the history, or what was there last, by address.
  std::vector<Mapping> mappings_in(Epoch when) const;

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

  // A former module's functions, which it has again whenever it is back in its place.
  struct Former {
    FormerModule module;
    std::map<Address, Function>* functions = nullptr;
  };

  Place place_of(Address address);
  Place place_in(Address address, Epoch when);
  void clip_to_former(Address address, Place& place) const;
  void take_module(const Mapping& mapping, std::span<const Mapping> nearby, Place& place);
  const Former* former_in(Address address, Epoch when) const;
  const Function& former_function(const Former& former, Address address);
  const Function& newest_function(Address address);
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
  static Function function_in_module(const Place& place, Address address);
  Function make_function(Address address);

  std::vector<Mapping> mappings_;
  Place last_place_;  // that was asked for
  std::string perf_map_;
  std::function<void(const Error&)> tell_;
  std::optional<GeneratedFunctions> generated_;                    // read when it is needed
  std::map<std::string, std::unique_ptr<ModuleSymbols>> modules_;  // null: cannot be read
  std::vector<Error> problems_;
  std::map<Address, Function> functions_;  // by begin; apart from each other
  const Function* last_ = nullptr;

  std::vector<Former> former_;  // what went last first
  // Of all of these the addresses; apart from each other, by their ends.
  std::map<Address, Address> former_ranges_;
  // Of former modules, by path and where the file's begin would be.
  std::map<std::pair<std::string, std::uint64_t>, std::map<Address, Function>> former_functions_;

  DebugFetch fetch_;
  std::shared_ptr<const CodeImage> code_;
  // Of generated functions that took each other's place: by begin and which one it is, and which
  // it was in an epoch.
  std::map<std::pair<Address, std::size_t>, Function> replaced_;
  std::map<std::pair<Address, Epoch>, const Function*> in_epochs_;
};

}  // namespace tailtrace
