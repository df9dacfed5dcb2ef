// How much one answer to a `monitor tailtrace` command holds, and how it is filled.
//
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "decoder/history/listing.h"
#include "decoder/history/range.h"

namespace tailtrace {

// What one answer holds at most: the debugger waits for all of it.
constexpr std::size_t kMaxText_bytes = 1 << 20;
constexpr std::uint64_t kMaxItems = 10'000;
// What is shown where nobody says how much.
constexpr std::uint64_t kPage = 10;

// Collects lines up to that.
LineSink into(std::string& text);

// `count` things from `first` on, counted from 1 or back from -1, as far as they are among `size`;
// `most` of them.
Range cut(std::int64_t first, std::uint64_t count, std::uint64_t size, std::uint64_t most);

// Whoever counts from the newest is answered so.
JsonNumbers numbers_like(std::int64_t first);

}  // namespace tailtrace
