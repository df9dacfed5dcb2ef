// Demangled names of Rust functions: of both ways that rustc mangles them. (The newer one, "v0", is
// RFC 2603; the older one dresses a path up as a C++ name.) They are written as rustc's own tools
// write them when they are brief: without hashes of crates and types of constants. (libiberty,
// which can do this as well, writes a name's lifetimes to no end if it says that there are 2^64.)
//
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tailtrace {

// "<str as core::fmt::Debug>::fmt" for "_RNvXs8_NtCs…_4core3fmteNtB5_5Debug3fmt"; nothing when it
// is no such name, or unfolds into something enormous.
std::optional<std::string> rust_v0_name(std::string_view name);

// "core::ptr::drop_in_place<T>" for what C++ makes of an older name,
// "core::ptr::drop_in_place$LT$T$GT$::h0123456789abcdef"; nothing when it does not end so.
std::optional<std::string> rust_legacy_name(std::string_view demangled);

}  // namespace tailtrace
