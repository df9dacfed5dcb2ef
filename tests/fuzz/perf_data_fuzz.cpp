// perf.data files from anywhere, in all their forms: an error that says why, or histories.
#include <cassert>
#include <fstream>

#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

const TempFolder& folder() {
  static const TempFolder made;
  return made;
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  ToyProgram toy(3, 4, 4);
  ToyRun run = toy.run(7, 300, true);
  run.snapshot->thread = {40, 41};
  Bytes file = perf_file_of(run, FiledProgram::write(toy, folder().file("toy")));
  return {file, as_pipe(file), as_pipe(file, true)};
}

void fuzz_one(ByteSpan input) {
  perf::PerfDataLimits limits;
  limits.unpacked_bytes = 1 << 20;
  auto data = perf::parse_perf_data(input, "input", {}, limits);
  if (!data) {
    assert(!data.error().why.empty());
    return;
  }
  auto recording = perf::PerfRecording::make(std::move(*data), "");
  if (!recording) {
    assert(!recording.error().why.empty());
    return;
  }
  std::size_t left = 4;
  for (const perf::PerfRecording::Thread& thread : (*recording)->threads()) {
    if (left-- == 0) break;
    auto opened = (*recording)->open_thread(thread.thread, 10000);
    if (!opened) continue;
    assert(opened->frame.thread == thread.thread);
    HistorySettings newest;
    newest.numbers = HistorySettings::Numbers::kFromNewest;
    History history(opened->frame, opened->source, newest);
    HistoryCursor cursor(history);
    int items = 500;
    for (cursor.seek_to_newest(); cursor.valid() && items > 0; cursor.prev()) --items;
  }
}

}  // namespace tailtrace
