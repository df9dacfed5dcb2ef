// Files that claim to hold more than they do: each place of a small file says the largest numbers
// there are. Reading it takes memory for what is there, not for what is said.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "decoder/base/file.h"
#include "decoder/bundle/bundle.h"
#include "decoder/bundle/lldb_history.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf_data/recording.h"
#include "decoder/record/ring.h"
#include "decoder/symbols/module_symbols.h"
#include "tests/faults/memory.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

// Kilobytes of file make some of objects, and errors their texts. A claim that is believed makes
// gigabytes.
constexpr std::size_t kMost_bytes = 16 << 20;

struct Format {
  const char* name;
  bool is_text;
  // Writes one; returns its path.
  std::string (*write)(const TempFolder& folder);
  void (*read)(const std::string& path);
};

// A new file each time: what overwrites one is sent to the disk at once by some file systems.
std::string put(const std::string& path, ByteSpan bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

void walk(const OpenedThread& opened) {
  HistorySettings newest;
  newest.numbers = HistorySettings::Numbers::kFromNewest;
  History history(opened.frame, opened.source, newest);
  HistoryCursor cursor(history);
  int items = 100;
  for (cursor.seek_to_newest(); cursor.valid() && items > 0; cursor.prev()) --items;
}

ToyRun toy_run(const ToyProgram& program) {
  ToyRun run = program.run(7, 300, true);
  run.snapshot->thread = {40, 41};
  return run;
}

std::string write_stream(const TempFolder& folder, RecordStreamWriter::Packing packing) {
  const std::string path = folder.file("a.stream");
  EXPECT_TRUE(save_snapshot(*toy_run(ToyProgram(3, 4, 4)).snapshot, "maps", path, packing));
  return path;
}

std::string write_bundle(const TempFolder& folder) {
  auto writer = BundleWriter::create(folder.file("a.tt"));
  EXPECT_TRUE(writer && writer->add(*toy_run(ToyProgram(3, 4, 4)).snapshot, "maps"));
  EXPECT_TRUE(writer->finish());
  return folder.file("a.tt/bundle.json");
}

void read_bundle_of(const std::string& json) {
  auto bundle = read_bundle(json.substr(0, json.rfind('/')));
  if (!bundle) return;
  for (const BundleThread& thread : bundle->threads)
    if (auto opened = open_thread(thread)) walk(*opened);
}

Bytes perf_data(const TempFolder& folder) {
  ToyProgram toy(3, 4, 4);
  return perf_file_of(toy_run(toy), FiledProgram::write(toy, folder.file("toy")));
}

void read_perf_data(const std::string& path) {
  auto recording = perf::PerfRecording::open(path);
  if (!recording) return;
  for (const perf::PerfRecording::Thread& thread : (*recording)->threads())
    if (auto opened = (*recording)->open_thread(thread.thread, 1000)) walk(*opened);
}

std::string write_ring(const TempFolder& folder) {
  auto writer = RingWriter::create(folder.file("a.ring"), {40, 41}, 0, kRingMinRecords);
  EXPECT_TRUE(writer);
  for (int i = 0; i < 100; ++i) writer->push({});
  return folder.file("a.ring");
}

void read_ring(const std::string& path) {
  auto ring = Ring::open(path);
  if (ring) (void)ring->newest(~0ull).records.size();
}

// The records of a data ring, as the kernel leaves them.
std::string write_data_ring(const TempFolder& folder) {
  Bytes ring(4096);
  for (std::size_t at = 0; at < ring.size(); at += 64) {
    const perf::RecordHeader header{9, 0, 64};
    std::memcpy(ring.data() + at, &header, sizeof header);
  }
  return put(folder.file("a.data"), ring);
}

void read_data_ring(const std::string& path) {
  auto bytes = read_file(path, 1 << 20);
  for (std::uint64_t head : {std::uint64_t{0}, std::uint64_t{64}, ~std::uint64_t{0}}) {
    (void)perf::read_backward_ring(*bytes, head).has_value();
    (void)perf::read_forward_ring(*bytes, 0, head).has_value();
  }
}

std::string write_lldb(const TempFolder& folder) {
  put(folder.file("41.pt"), Bytes(4096, 0));
  return put(folder.file("trace.json"), as_bytes(R"({"type": "intel-pt",
    "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
    "processes": [{"pid": 40, "triple": "x86_64-*-linux",
                   "threads": [{"tid": 41, "iptTrace": "41.pt"}],
                   "modules": [{"systemPath": "/bin/true", "loadAddress": 65536}]}]})"));
}

void read_lldb(const std::string& path) {
  auto recording = LldbRecording::open(path);
  if (!recording) return;
  for (ThreadId thread : (*recording)->threads())
    if (auto opened = (*recording)->open_thread(thread)) walk(*opened);
}

void read_stream(const std::string& path) { (void)load_snapshot(path).has_value(); }

constexpr Format kFormats[] = {
    {"stream", false,
     [](auto& folder) { return write_stream(folder, RecordStreamWriter::Packing::kNone); },
     read_stream},
    {"packed_stream", false,
     [](auto& folder) { return write_stream(folder, RecordStreamWriter::Packing::kZstd); },
     read_stream},
    {"bundle", true, write_bundle, read_bundle_of},
    {"perf_data", false,
     [](auto& folder) { return put(folder.file("perf.data"), perf_data(folder)); }, read_perf_data},
    {"perf_pipe", false,
     [](auto& folder) { return put(folder.file("perf.data"), as_pipe(perf_data(folder))); },
     read_perf_data},
    {"packed_perf_pipe", false,
     [](auto& folder) { return put(folder.file("perf.data"), as_pipe(perf_data(folder), true)); },
     read_perf_data},
    {"ring", false, write_ring, read_ring},
    {"data_ring", false, write_data_ring, read_data_ring},
    {"lldb", true, write_lldb, read_lldb},
};

class Claims : public testing::TestWithParam<Format> {};

// A number of so many bytes in the place of what is there.
struct Claim {
  std::size_t size_bytes;
  std::uint64_t value;
};
constexpr Claim kClaims[] = {{8, ~0ull}, {8, ~0ull >> 1}, {8, 1ull << 34}, {4, 0x7fffffff},
                             {4, ~0u},   {4, 1u << 28},   {4, 60u << 20},  {2, 0xffff}};

std::vector<Bytes> with_claims_at(const Bytes& good, std::size_t at) {
  std::vector<Bytes> all;
  for (const Claim& claim : kClaims) {
    if (at % claim.size_bytes != 0 || at + claim.size_bytes > good.size()) continue;
    all.push_back(good);
    std::memcpy(all.back().data() + at, &claim.value, claim.size_bytes);
  }
  return all;
}

// The same for digits.
std::vector<Bytes> with_digits_at(const Bytes& good, std::size_t at) {
  auto is_digit = [&](std::size_t i) { return good[i] >= '0' && good[i] <= '9'; };
  std::vector<Bytes> all;
  if (!is_digit(at) || is_digit(at - 1)) return all;
  std::size_t end = at;
  while (is_digit(end)) ++end;
  for (std::string_view number : {"2147483647", "34359738368", "18446744073709551615"}) {
    Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at));
    bytes.insert(bytes.end(), number.begin(), number.end());
    bytes.insert(bytes.end(), good.begin() + static_cast<std::ptrdiff_t>(end), good.end());
    all.push_back(std::move(bytes));
  }
  return all;
}

TEST(Memory, IsNoted) {
  MemoryPeak peak;
  EXPECT_EQ(Bytes(kMost_bytes).size(), kMost_bytes);
  EXPECT_GE(peak.bytes(), kMost_bytes);
  EXPECT_LT(peak.bytes(), 2 * kMost_bytes);
}

// What it takes for a name is not kept for all of them.
TEST(Symbols, OfALargeFileAreLookedThroughInLittleMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "what the library for debug information takes is counted, too";
#endif
  auto module = ModuleSymbols::open("/proc/self/exe");
  ASSERT_TRUE(module) << module.error().to_string();
  ASSERT_TRUE((*module)->has_debug_info());
  MemoryPeak peak;
  std::size_t count = 0;
  EXPECT_TRUE((*module)->each_function([&](const Function&) { return ++count; }));
  EXPECT_GT(count, 10000u);
  EXPECT_LT(peak.bytes(), std::size_t{2} << 20);
}

TEST_P(Claims, OfAnySizeTakeNoMemoryThatTheFileDoesNotFill) {
  constexpr std::size_t kPlaces_bytes = 512;  // headers lie in front
  const Format& format = GetParam();
  TempFolder folder;
  const std::string path = format.write(folder);
  auto good = read_file(path, 64 << 20);
  ASSERT_TRUE(good);
  std::size_t tried = 0;
  for (std::size_t at = format.is_text ? 1 : 0; at < std::min(good->size(), kPlaces_bytes);
       at += format.is_text ? 1 : 4)
    for (const Bytes& bad :
         format.is_text ? with_digits_at(*good, at) : with_claims_at(*good, at)) {
      put(path, bad);
      MemoryPeak peak;
      format.read(path);
      ASSERT_LE(peak.bytes(), kMost_bytes) << "at byte " << at;
      ++tried;
    }
  EXPECT_GT(tried, 8u);
}

INSTANTIATE_TEST_SUITE_P(Of, Claims, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tailtrace
