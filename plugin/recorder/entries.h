// Where functions begin in a process, by name: in the symbol tables of the files that it has mapped
// to be executed.
//
// Threading: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

// All functions of that name: FUNCTION, MODULE`FUNCTION, *ADDRESS, MODULE+OFFSET
// (decoder/history/location.h), each with what names it alone, as far as it can. Where none has
// just that name they are those that a debugger finds by it; of an indirect function they are all
// that may be called by its name. Errors: kUsage when it is no such name, or nothing has it.
Result<std::map<Address, std::string>> entries_of(const std::string& name,
                                                  const std::vector<Mapping>& mappings);

// What the kernel told the program when it began; empty when the process is gone.
Bytes auxiliary_vector_of(std::int32_t pid);

// Where the program that a process executes begins; what it needs is mapped by then. 0: not known.
Address program_entry(std::int32_t pid);

}  // namespace tailtrace
