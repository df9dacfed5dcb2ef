// Files in which programs name generated code, from anybody: the first byte says which of both the
// rest is. Whatever is read is within the limits, lies in the file, and can be shown to a terminal.
#include <cassert>

#include "decoder/base/text.h"
#include "decoder/symbols/jit_dump.h"
#include "decoder/symbols/perf_map.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/jit_files.h"

namespace tailtrace {
namespace {

void check_names(const GeneratedFunctions& functions) {
  Address at;
  for (;;) {
    const GeneratedFunctions::Cover cover = functions.cover(at);
    assert(cover.begin <= at && at < cover.end);
    if (cover.name != nullptr) {
      assert(cover.name->size() <= GeneratedFunctions::kMaxName_bytes && !cover.name->empty());
      assert(*cover.name == printable(*cover.name) && cover.entry <= cover.begin);
    }
    if (cover.end == Address{~0ull}) return;
    at = cover.end;
  }
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  JitFile file(1);
  file.load(10, 0x1000, "one", {1, 2, 3}, 7);
  file.record(2, 11, Bytes(40, 1));
  file.load(12, 0x1002, "_ZN3jit3twoEi", {4, 5}, 8);
  file.move(13, 0x1000, 0x3000, 3, 7);
  file.record(4, 14, Bytes(24));
  file.record(3, 15, {});
  Bytes dump = file.bytes();
  dump.insert(dump.begin(), 0);
  constexpr std::string_view kMap =
      "\1"
      "1000 10 one\n0x1008 0x20 a::b(int)\r\n3000 0 stub\nffffffffffffffff 2 wraps\n4000 4 \33[m\n";
  const ByteSpan map = as_bytes(kMap);
  return {dump, Bytes(map.begin(), map.end())};
}

void fuzz_one(ByteSpan input) {
  if (input.empty()) return;
  const bool is_map = (input[0] & 1) != 0;
  input = input.subspan(1);
  GeneratedFunctions functions;
  if (is_map) {
    Result<void> added = add_perf_map(as_text(input), "map", functions);
    assert(added || !added.error().why.empty());
  } else {
    Result<JitDump> dump = parse_jit_dump(input, "dump");
    if (!dump) {
      assert(dump.error().code == ErrorCode::kBadInput && !dump.error().why.empty());
      return;
    }
    for (const JitLoad& made : dump->loads) {
      assert(made.code.size() == made.size_bytes && made.size_bytes != 0);
      assert(made.code.data() >= input.data() &&
             made.code.data() + made.code.size() <= input.data() + input.size());
      functions.add(made.address, made.size_bytes, made.name);
    }
  }
  check_names(functions);
}

}  // namespace tailtrace
