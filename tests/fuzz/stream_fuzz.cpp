// Record streams from anywhere: reading one ends in records or in an error, and the history of what
// was read can be walked.
#include <cassert>

#include "decoder/history/history.h"
#include "decoder/history/snapshot_file.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {

std::vector<Bytes> fuzz_seeds() {
  TempFolder folder;
  std::vector<Bytes> seeds;
  using Packing = RecordStreamWriter::Packing;
  for (Packing packing : {Packing::kNone, Packing::kZstd}) {
    ToyRun run = ToyProgram(1, 3, 4).run(1, 500, true);
    bool saved =
        save_snapshot(*run.snapshot, "1000-2000 r-xp 0 0:0 0 /bin/x\n", folder.file("s"), packing)
            .has_value();
    assert(saved);
    (void)saved;
    seeds.push_back(*read_file(folder.file("s"), 1 << 20));
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  constexpr std::uint64_t kLimit_bytes = 1 << 22;
  auto stream = parse_record_stream(input, "input", kLimit_bytes);
  if (!stream) {
    assert(!stream.error().why.empty());
    return;
  }
  assert(stream->records.size() * sizeof(BranchRecord) <= kLimit_bytes);
  LoadedSnapshot loaded = snapshot_of(std::move(*stream), "input");
  History history(loaded.snapshot);
  HistoryCursor cursor(history);
  int left = 2000;
  for (cursor.seek_to_newest(); cursor.valid() && left > 0; cursor.prev()) --left;
}

}  // namespace tailtrace
