// Where a thread's own copy of a thread-local variable is, as `qGetTLSAddr` asks: by what glibc
// tells debuggers of itself (nptl_db in its sources), and U. Drepper's "ELF Handling For
// Thread-Local Storage" for x86-64.
//
// Threading: pure functions.
#pragma once

#include <optional>

#include "plugin/server/qemu/library_list.h"

namespace tailtrace {

// Which of the modules with thread-local variables has the link map; the program itself is the
// first. Nothing where the C library is another one.
std::optional<std::uint64_t> tls_module(const LibraryList& libraries, Address link_map,
                                        const ReadGuest& read);

// Nothing while the thread has no copy of the module's variables: it gets one when it uses them.
std::optional<Address> tls_address(Address thread_pointer, std::uint64_t module,
                                   std::uint64_t offset, const ReadGuest& read);

}  // namespace tailtrace
