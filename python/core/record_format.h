// How Python is told what a BranchRecord is made of, by the one list of its fields
// (decoder/record/record_columns.h).
//
// Threading: pure functions.
#pragma once

#include <string>

#include "decoder/record/record_columns.h"

namespace tailtrace::python {

// The letter that the struct module has for a column.
char letter_of(const RecordColumn& column);

// One record in the struct module's words, as PEP 3118 extends them: "T{<Q:from:...}".
std::string record_format();

// The same for `struct.unpack`: "<QQ...".
std::string record_struct();

}  // namespace tailtrace::python
