// Where functions begin in a process, by name: in the symbol tables of the files that it has mapped
// to be executed.
//
// Threading: any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

// All functions of that name: FUNCTION, MODULE`FUNCTION, *ADDRESS, MODULE+OFFSET, FILE:LINE
// (decoder/history/location.h), each with what names it alone, as far as it can. Of a line they are
// where a debugger's breakpoints on it are. Where none has
// just that name they are those that a debugger finds by it; of an indirect function it is the one
// that the process has chosen, or they are all that may be called by its name while nobody knows.
// Errors: kUsage when it is no such name, or nothing has it.
Result<std::map<Address, std::string>> entries_of(const std::string& name, std::int32_t pid,
                                                  const std::vector<Mapping>& mappings);

// What the process has at an address of a file, MODULE+OFFSET; nothing when no file of that name is
// mapped.
std::optional<Address> place_in_module(const std::string& module, std::uint64_t offset,
                                       const std::vector<Mapping>& mappings);

// Whether it is MODULE`FUNCTION of a file that is not mapped: the process may load it later.
bool awaits_module(const std::string& name, const std::vector<Mapping>& mappings);

// What the kernel told the program when it began; empty when the process is gone.
Bytes auxiliary_vector_of(std::int32_t pid);

// Where the program that a process executes begins; what it needs is mapped by then. 0: not known.
Address program_entry(std::int32_t pid);

// Whether a dynamic linker has loaded, and loads, what it needs.
bool has_dynamic_linker(std::int32_t pid);

// Where the dynamic linker calls whenever it has mapped files, or is about to; none of the code in
// them has run then. 0: there is no linker that tells debuggers.
Address loader_hook(const std::vector<Mapping>& mappings);

// Whether a file that goes by that name is mapped to be executed.
bool is_mapped(const std::string& module, const std::vector<Mapping>& mappings);

}  // namespace tailtrace
