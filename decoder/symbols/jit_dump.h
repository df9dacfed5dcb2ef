// Jitdumps: binary files in which a program that generates code tells what it made, when, and with
// which bytes. JIT.md draws them.
//
// Threading: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/symbols/generated_functions.h"

namespace tailtrace {

// A function that came to be at an address.
struct JitLoad {
  std::uint64_t time = 0;  // in the file's clock
  Address address;
  std::uint64_t size_bytes = 0;
  std::string_view name;
  ByteSpan code;  // size_bytes of them; empty when the file has them not
};

struct JitDump {
  static constexpr std::size_t kMaxLoads = GeneratedFunctions::kMaxFunctions;

  std::uint32_t pid = 0;
  bool is_tsc = false;  // times are of the time stamp counter; else nanoseconds of some clock
  std::vector<JitLoad> loads;  // in the file's order, those that were moved once more
  std::vector<Error> problems;
};

// Refers to `bytes`. `name` is what errors call it. What cannot be read is among `problems`, and
// the rest goes on where that is possible. Errors: kBadInput when it is no jitdump of x86-64.
Result<JitDump> parse_jit_dump(ByteSpan bytes, const std::string& name);

// How the names of such files begin.
constexpr char kJitDumpBegin[] = "jit-";

// Whether a path is called as such files are: jit-PID.dump.
bool is_jit_dump_name(std::string_view path);

}  // namespace tailtrace
