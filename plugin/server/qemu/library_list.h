// The shared libraries that a program has loaded, read from its dynamic linker's own list (link.h
// of glibc and musl), as the document of `qXfer:libraries-svr4` (GDB's manual, "Library List Format
// for SVR4 Targets").
//
// GDB reads that list by itself where a server does not, but not while a thread is in the past:
// there is no memory then but what is read-only, and all libraries were taken for unloaded.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/types.h"

namespace tailtrace {

// Returns how many bytes could be read.
using ReadGuest = std::function<std::size_t(Address, std::span<std::uint8_t>)>;

struct LoadedLibrary {
  std::string name;
  Address link_map;
  std::uint64_t moved_by = 0;  // from the file's own addresses
  Address dynamic_section;
  Address name_space;  // the structure that tells of it (dlmopen)
};

struct LibraryList {
  Address program;  // its own link map
  std::vector<LoadedLibrary> libraries;
};

// `auxv` is the program's auxiliary vector. Nothing while there is no such list: before the dynamic
// linker has run, and in programs without one.
std::optional<LibraryList> loaded_libraries(ByteSpan auxv, const ReadGuest& read);

// As XML.
std::string library_document(const LibraryList& list);

}  // namespace tailtrace
