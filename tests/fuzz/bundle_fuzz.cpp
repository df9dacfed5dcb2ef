// Bundles from anywhere: bundle.json ends in a list of threads or in an error, and so does what is
// in the files that it names.
#include <cassert>
#include <filesystem>
#include <fstream>

#include "decoder/bundle/bundle.h"
#include "decoder/history/history.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// The input is a bundle.json, four zero bytes, records, a line "@@", and a stream.
constexpr std::string_view kSeam("\0\0\0\0", 4);

// A folder that all inputs are laid out in.
const TempFolder& folder() {
  static const TempFolder made;
  return made;
}

void put(const std::string& name, std::string_view text) {
  std::ofstream(folder().file(name), std::ios::binary | std::ios::trunc) << text;
}

std::string seed() {
  ToyRun run = ToyProgram(1, 3, 4).run(1, 300, true);
  TempFolder place;
  auto writer = BundleWriter::create(place.file("b"));
  assert(writer);
  bool saved = writer->add(*run.snapshot, "1000-2000 r-xp 0 0:0 0 /bin/x\n").has_value();
  saved = saved && writer->finish().has_value();
  assert(saved);
  (void)saved;
  std::string text;
  for (const char* name : {"bundle.json", "1.records", "1.stream"}) {
    Bytes bytes = *read_file(place.file("b") + "/" + name, 1 << 20);
    text.append(as_text(bytes)).append(name[0] == 'b' ? kSeam : "");
    if (name[2] == 'r') text.append("\n@@\n");
  }
  return text;
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::string text = seed();
  ByteSpan bytes = as_bytes(text);
  return {Bytes(bytes.begin(), bytes.end())};
}

void fuzz_one(ByteSpan input) {
  std::string_view text = as_text(input);
  std::size_t json_end = std::min(text.find(kSeam), text.size());
  std::string_view rest = text.substr(std::min(json_end + kSeam.size(), text.size()));
  std::size_t records_end = std::min(rest.find("\n@@\n"), rest.size());
  put("1.records", rest.substr(0, records_end));
  put("1.stream", rest.substr(std::min(records_end + 4, rest.size())));
  auto bundle = parse_bundle(text.substr(0, json_end), folder().path());
  if (!bundle) {
    assert(!bundle.error().why.empty());
    return;
  }
  assert(!bundle->threads.empty());
  for (const BundleThread& thread : bundle->threads) {
    assert(thread.records_path.starts_with(folder().path() + "/"));
    auto loaded = load_thread(thread);
    if (!loaded) continue;
    assert(loaded->snapshot->records.size() == thread.records);
    History history(loaded->snapshot);
    HistoryCursor cursor(history);
    int left = 500;
    for (cursor.seek_to_newest(); cursor.valid() && left > 0; cursor.prev()) --left;
  }
}

}  // namespace tailtrace
