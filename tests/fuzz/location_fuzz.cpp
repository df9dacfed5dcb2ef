// Locations from anywhere: what can be read is printed as something that reads as the same, and
// what cannot is an error of usage.
#include <cassert>

#include "decoder/history/location.h"
#include "tests/fuzz/fuzz_driver.h"

namespace tailtrace {

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds;
  for (std::string_view text :
       {"main", "*0x401136", "0x401136", "a.c:88", "src/a.c:ns::f", "libc.so.6`free",
        "libc.so.6+0x27fd0", "*main+12", "(anonymous namespace)::f<int>(char const*)", "operator+",
        ":::", "x::y:1", "18446744073709551616", "*0xffffffffffffffff+0xffffffffffffffff"}) {
    ByteSpan bytes = as_bytes(text);
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  Result<Location> location = parse_location(as_text(input));
  if (!location) {
    assert(location.error().code == ErrorCode::kUsage && !location.error().why.empty());
    return;
  }
  Result<Location> again = parse_location(location_text(*location));
  assert(again && *again == *location);
  // A function of that name is found by it, and no path ends with nothing.
  Function function;
  function.name = location->name;
  assert(has_name(function, location->name) == !location->name.empty());
  assert(is_called(function, location->name) == !location->name.empty());
  assert(ends_path(location->file, location->file) == !location->file.empty());
}

}  // namespace tailtrace
