// Where functions begin in a process, by name: in the symbol tables of the files that it has mapped
// to be executed.
//
// Threading: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

// All functions of that name: FUNCTION, MODULE`FUNCTION, *ADDRESS (decoder/history/location.h).
// `maps` as /proc/PID/maps. Errors: kUsage when it is no such name, or nothing has it.
Result<std::vector<Address>> entries_of(const std::string& name, std::string_view maps);

// What the kernel told the program when it began; empty when the process is gone.
Bytes auxiliary_vector_of(std::int32_t pid);

// Where the program that a process executes begins; what it needs is mapped by then. 0: not known.
Address program_entry(std::int32_t pid);

}  // namespace tailtrace
