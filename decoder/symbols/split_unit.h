// Units whose debug information is in a file of its own (`-gsplit-dwarf`): the module has their
// skeletons, with lines and addresses, but without functions.
//
// Threading: one thread at a time for a Dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <optional>
#include <string>

namespace tailtrace {

// An attribute of the die itself, whatever it is an instance or a skeleton of; empty when it has
// none.
std::string own_text(Dwarf_Die& die, unsigned name);

bool is_skeleton(Dwarf_Die& unit);

// The rest of a skeleton, out of the file that it names, from `folder`, where the module is, or
// from where it was compiled; nothing when it is not there. It lives as long as the skeleton's
// Dwarf.
std::optional<Dwarf_Die> split_unit(Dwarf_Die& skeleton, const std::string& folder);

// The name of that file, as the compiler noted it.
std::string split_file(Dwarf_Die& skeleton);

}  // namespace tailtrace
