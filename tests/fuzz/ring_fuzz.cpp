// Ring files from anywhere: opening and reading one must end in records or in an error.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <fstream>
#include <iterator>

#include "decoder/record/ring.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {

std::vector<Bytes> fuzz_seeds() {
  TempFolder folder;
  auto writer = RingWriter::create(folder.file("r"), {7, 8}, 0, 64);
  assert(writer);
  for (std::uint64_t n = 0; n < 100; ++n)
    writer->push({{n}, {n + 1}, n, 1, RecordKind::kJump, 0, 0});
  return {*read_file(folder.file("r"), 1 << 20)};
}

void fuzz_one(ByteSpan input) {
  UniqueFd fd(::memfd_create("ring", MFD_CLOEXEC));
  assert(::write(fd.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  auto ring = Ring::open("/proc/self/fd/" + std::to_string(fd.get()));
  if (!ring) {
    assert(!ring.error().why.empty());
    return;
  }
  RecordRange all = ring->newest(~0ull);
  assert(all.records.size() < ring->header().capacity);
  for (std::size_t i = 0; i < all.records.size(); ++i)
    assert(ring->at({all.first.value + i}).value() == all.records[i]);
}

}  // namespace tailtrace
