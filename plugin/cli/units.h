// Quantities as people type them and as we print them: sizes with units, ring capacities.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "decoder/base/result.h"

namespace tailtrace {

// A size in bytes: "512", "64KiB", "64k", "1MiB", "2G"; units are powers of 1024, their case does
// not matter. Errors: kUsage, for anything else and for what does not fit 64 bits.
Result<std::uint64_t> parse_size(std::string_view text);

// A ring's capacity: a number of records ("65536"), or the size of them ("2MiB").
// Errors: kUsage; the fix names a capacity that can be used.
Result<std::uint64_t> parse_ring_records(std::string_view text);

// "64 MiB", "516 KiB", "100 bytes": the largest unit that divides it.
std::string format_size(std::uint64_t size_bytes);

}  // namespace tailtrace
