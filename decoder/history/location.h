// Location: a place in the code as people write it to a debugger.
//
//   FUNCTION               every function of that name
//   FILE:LINE              a source line
//   FILE:FUNCTION          a function of that source file
//   MODULE`FUNCTION        a function of that module
//   *ADDRESS, 0xADDRESS    an instruction; hexadecimal behind 0x, else decimal
//   NAME+OFFSET            so many bytes behind a function's entry, or, if NAME is a module, the
//                          address OFFSET of its file, as objdump and addr2line have it
//
// Names of files and modules may lack the beginning of their paths, names of functions what
// debuggers do not ask for (function_name.h). What we print ("worker.cc:88", "main+0x12",
// "0x401136") can be read back.
//
// Threading: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/history/function_name.h"

namespace tailtrace {

struct Location {
  std::optional<Address> address;
  std::string file;
  unsigned line = 0;
  std::string module;
  std::string name;                     // of a function; with an offset also of a module
  std::optional<std::uint64_t> offset;  // bytes behind `name`

  friend bool operator==(const Location&, const Location&) = default;
};

// The longest text that is looked at.
constexpr std::size_t kMaxLocation_bytes = 4096;

// Errors: kUsage when the text is none of the above.
Result<Location> parse_location(std::string_view text);

// The text that parse_location reads as this.
std::string location_text(const Location& location);

// Whether a location of functions, or behind the begin of one, is of this one.
bool means(const Location& location, const Function& function);

// Whether a path is `end` or ends with that, by whole components.
bool ends_path(std::string_view path, std::string_view end);

// Whether a file goes by the name of a module: it ends its path, and may lack the file's version,
// as links do: "libz.so.1" is of libz.so.1.2.13.
bool is_module(std::string_view path, std::string_view name);

}  // namespace tailtrace
