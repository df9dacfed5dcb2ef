// ProcessSymbols: names and lines of a process's addresses, from the files it has mapped.
//
// A file is read when an address of it is asked for. A file that cannot be read, or is not what was
// mapped, gives no names; problems() tells.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decoder/history/symbolizer.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/module_symbols.h"

namespace tailtrace {

class ProcessSymbols : public Symbolizer {
 public:
  // REQUIRES: mappings as parse_maps orders them.
  explicit ProcessSymbols(std::vector<Mapping> mappings);

  const Function& function_at(Address address) override;
  std::optional<SourceLine> line_at(Address address) override;
  std::optional<std::uint64_t> address_in_file(Address address) override;
  const std::vector<SourceLine>* lines_of_unit(Address address) override;

  const std::vector<Mapping>& mappings() const { return mappings_; }

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
  Function make_function(Address address);

  std::vector<Mapping> mappings_;
  std::map<std::string, std::unique_ptr<ModuleSymbols>> modules_;  // null: cannot be read
  std::vector<Error> problems_;
  std::map<Address, Function> functions_;  // by begin; apart from each other
  const Function* last_ = nullptr;
};

}  // namespace tailtrace
