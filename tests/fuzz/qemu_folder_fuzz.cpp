// Folders of recorded processes from anywhere: reading one must end in a history or in an error.
//
// An input is the four files of a folder, one behind the other: the sizes of process.json, blocks
// and code, 4 bytes each, then those three and the ring.
#include <unistd.h>

#include <cassert>
#include <cstring>
#include <fstream>

#include "decoder/history/history.h"
#include "plugin/engines/qemu/qemu_engine.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::size_t kParts = 4;
constexpr const char* kNames[kParts] = {kProcessName, kBlocksName, kCodeName, "thread.0.ring"};
constexpr std::uint64_t kCodeAt = 0x1000, kTableAt = 0x7000'0000;

template <class T>
void put(Bytes& bytes, std::size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

Bytes process_file() {
  const char text[] =
      R"({"schema": "tailtrace-process-1", "pid": 7, "program": 0, "start_time": 1})";
  return Bytes(text, text + sizeof text - 1);
}

// Two blocks: dec ecx; jnz back, and ret.
Bytes blocks_file() {
  Bytes bytes(kLogHeaderSize_bytes + 2 * sizeof(RingBlock));
  BlocksHeader& header = *reinterpret_cast<BlocksHeader*>(bytes.data());
  std::memcpy(header.magic, kBlocksMagic, sizeof kBlocksMagic);
  header.version = kBlocksVersion;
  header.block_size_bytes = sizeof(RingBlock);
  header.address = kTableAt;
  header.capacity = 2;
  header.used = 2;
  std::uint64_t conditional = static_cast<std::uint64_t>(RecordKind::kConditional) << 32;
  std::uint64_t returns = static_cast<std::uint64_t>(RecordKind::kReturn) << 32;
  put(bytes, kLogHeaderSize_bytes, RingBlock{kCodeAt, kCodeAt + 4, kCodeAt + 2, conditional | 2});
  put(bytes, kLogHeaderSize_bytes + sizeof(RingBlock),
      RingBlock{kCodeAt + 4, kNoFallThrough, kCodeAt + 4, returns | 1});
  return bytes;
}

Bytes code_file() {
  Bytes bytes(kLogHeaderSize_bytes + 64);
  CodeHeader& header = *reinterpret_cast<CodeHeader*>(bytes.data());
  std::memcpy(header.magic, kCodeMagic, sizeof kCodeMagic);
  header.version = kCodeVersion;
  header.capacity_bytes = 64;
  header.used_bytes = 64;
  const std::uint8_t loop[] = {0xff, 0xc9, 0x75, 0xfc, 0xc3}, changed[] = {0x90};
  put(bytes, kLogHeaderSize_bytes, CodeEntry{kCodeAt, sizeof loop, 0});
  put(bytes, kLogHeaderSize_bytes + 16, loop);
  put(bytes, kLogHeaderSize_bytes + 32, CodeEntry{kCodeAt + 4, sizeof changed, 1});
  put(bytes, kLogHeaderSize_bytes + 48, changed);
  return bytes;
}

Bytes ring_file() {
  TempFolder folder;
  auto writer = RingWriter::create(folder.file("r"), {7, 8}, 0, kRingMinRecords);
  assert(writer);
  writer->push({{}, {kCodeAt}, 0, 0, RecordKind::kEnable, 0, 1});
  for (int i = 0; i < 80; ++i)
    writer->push({{kCodeAt + 2}, {kCodeAt}, 5, 2, RecordKind::kConditional, 0, 0});
  writer->push({{kCodeAt}, {kCodeAt}, 5, 0, RecordKind::kCodeChange, kFlagAsync, 1});
  Bytes bytes = *read_file(folder.file("r"), 1 << 20);
  RingHeader& header = *reinterpret_cast<RingHeader*>(bytes.data());
  header.address = 0x5000'0000;
  header.open_block = kTableAt;
  header.epoch = 1;
  header.state = RingState::kRunning;
  return bytes;
}

void read_thread(QemuEngine& engine, ThreadId thread) {
  auto last = engine.last_snapshot(thread, ~0ull);
  if (!last) {
    assert(!last.error().what.empty());
    return;
  }
  History history(std::make_shared<const ThreadSnapshot>(std::move(*last)));
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  for (int i = 0; i < 200 && cursor.valid(); ++i) cursor.prev();
  if (!engine.start(thread)) return;
  for (bool faulted : {false, true})
    for (std::uint64_t pc : {kCodeAt, kCodeAt + 2, kCodeAt + 4}) {
      auto stopped = engine.snapshot(thread, {{pc}, faulted}, 100);
      assert(!stopped || stopped->records.size() <= 104);
    }
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  Bytes seed(12);
  std::size_t at = 0;
  for (const Bytes& part : {process_file(), blocks_file(), code_file()}) {
    put(seed, at, static_cast<std::uint32_t>(part.size()));
    at += 4;
    seed.insert(seed.end(), part.begin(), part.end());
  }
  Bytes ring = ring_file();
  seed.insert(seed.end(), ring.begin(), ring.end());
  return {seed};
}

void fuzz_one(ByteSpan input) {
  static TempFolder folder;
  if (input.size() < 12) return;
  std::uint32_t sizes[kParts] = {};
  std::memcpy(sizes, input.data(), 12);
  ByteSpan rest = input.subspan(12);
  sizes[3] = ~0u;
  for (std::size_t i = 0; i < kParts; ++i) {
    std::size_t n = std::min<std::size_t>(sizes[i], rest.size());
    ::unlink(folder.file(kNames[i]).c_str());
    std::ofstream(folder.file(kNames[i]), std::ios::binary)
        .write(reinterpret_cast<const char*>(rest.data()), static_cast<std::streamsize>(n));
    rest = rest.subspan(n);
  }
  auto engine = QemuEngine::open(folder.path());
  auto threads = engine ? (*engine)->threads() : fail(std::move(engine.error()));
  if (!threads) {
    assert(!threads.error().what.empty());
    return;
  }
  for (const auto& thread : *threads) read_thread(**engine, thread.thread);
}

}  // namespace tailtrace
