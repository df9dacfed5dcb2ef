// How soon a large Intel PT buffer is there: its first screen, any record, all of it; beside what
// libipt takes for the same bytes in the same run.
//
//   history_bench [--mib=N] [PROGRAM ARG...]
//
// The buffer is made here: the newest branches of a program that runs under qemu (a shell loop if
// none is named), written as PT and repeated until there are so many MiB (1024). One line a
// measurement; times are by the wall. Nothing here can fail on time.
//
// GDB and LLDB need more than bytes: history_peers.py, which is run at the end, has them read what
// they can.
#include <fmt/core.h>
#include <intel-pt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "decoder/history/history.h"
#include "decoder/history/pt_segments.h"
#include "decoder/history/segment_counter.h"
#include "decoder/pt/segments/segments.h"
#include "tests/support/recorded_trace.h"
#include "tests/support/temp_folder.h"
#include "tests/support/usage.h"

namespace tailtrace {
namespace {

using Numbers = HistorySettings::Numbers;

constexpr int kRounds = 5;
constexpr std::size_t kPeer_bytes = std::size_t{4} << 20;
constexpr std::size_t kShared_bytes = std::size_t{256} << 20;

double seconds(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// What this process has written to of memory that is no file's.
double resident_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::strtod(line.c_str() + 8, nullptr) / 1024;
  return 0;
}

struct Buffer {
  Bytes trace;
  std::shared_ptr<const CodeImage> code;
  std::size_t once_bytes = 0;  // of what is repeated
};

Result<Buffer> make_buffer(const std::vector<std::string>& program, std::size_t size_bytes) {
  TempFolder folder;
  Result<pt::PtInput> once = pt::record_as_pt(program, std::uint64_t{1} << 22, folder.file("code"));
  if (!once) return fail(std::move(once.error()));
  Buffer buffer{{}, once->code, once->trace.size()};
  buffer.trace.reserve(size_bytes + once->trace.size());
  while (buffer.trace.size() < size_bytes)
    buffer.trace.insert(buffer.trace.end(), once->trace.begin(), once->trace.end());
  return buffer;
}

// What was read of a source.
struct Counts {
  std::atomic<std::uint64_t> segments = 0, records = 0, bytes = 0;
};

// A source that counts what is read of it.
class Counted final : public SegmentSource {
 public:
  Counted(std::shared_ptr<const SegmentSource> source, Counts& counts)
      : source_(std::move(source)), counts_(counts) {}

  std::uint64_t size() const override { return source_->size(); }
  std::optional<std::uint64_t> record_count() const override { return source_->record_count(); }
  std::unique_ptr<SegmentReader> reader() const override {
    return std::make_unique<Reader>(source_->reader(), counts_);
  }

 private:
  class Reader final : public SegmentReader, public SegmentCounter {
   public:
    Reader(std::unique_ptr<SegmentReader> reader, Counts& counts)
        : reader_(std::move(reader)), counts_(counts) {}
    std::optional<SegmentCount> count(Extent extent) override {
      return dynamic_cast<SegmentCounter&>(*reader_).count(extent);
    }
    std::optional<Extent> cut(std::uint64_t end) override { return reader_->cut(end); }
    SegmentRecords read(Extent extent) override {
      SegmentRecords read = reader_->read(extent);
      ++counts_.segments;
      counts_.records += read.records.size();
      counts_.bytes += extent.end - extent.begin;
      return read;
    }

   private:
    std::unique_ptr<SegmentReader> reader_;
    Counts& counts_;
  };

  std::shared_ptr<const SegmentSource> source_;
  Counts& counts_;
};

History open(const Buffer& buffer, Numbers numbers, Counts& counts) {
  ThreadFrame frame;
  frame.code = buffer.code;
  pt::DecoderConfig config;
  config.first_epoch = buffer.code->newest();
  frame.first_epoch = config.first_epoch;
  auto source = std::make_shared<Counted>(
      std::make_shared<PtSegments>(nullptr, buffer.trace, buffer.code, config), counts);
  HistorySettings settings;
  settings.numbers = numbers;
  return History(frame, source, settings);
}

void bench_first_screen(const Buffer& buffer) {
  double least = 1e9, memory = 0;
  Counts counts;
  for (int round = 0; round < kRounds; ++round) {
    double before = resident_mib();
    least = std::min(least, seconds([&] {
                       History history = open(buffer, Numbers::kFromNewest, counts);
                       HistoryCursor cursor(history);
                       cursor.seek_to_newest();
                       for (int i = 1; i < 50 && cursor.valid(); ++i) cursor.prev();
                       memory = std::max(memory, resident_mib() - before);
                     }));
  }
  fmt::print("first 50 instructions, from opening        {:10.2f} ms  {:.1f} MiB\n", least * 1e3,
             memory);
}

// Records near the newest end, whose segments were read; then anywhere, whose were not.
void bench_random_records(const History& history, const Counts& counts) {
  constexpr int kWarm = 100'000, kCold = 500;
  std::mt19937_64 random(1);
  std::uint64_t end = history.record_end().value, found = 0;
  constexpr std::uint64_t kNear = 100'000;
  for (std::uint64_t i = 1; i < kNear; i += 100) found += history.record({end - i})->insns;
  double warm = seconds([&] {
    for (int i = 0; i < kWarm; ++i) found += history.record({end - 1 - random() % kNear})->insns;
  });
  fmt::print("a record at random, segment decoded        {:10.3f} us\n", warm / kWarm * 1e6);
  std::vector<double> times;
  std::vector<std::uint64_t> made, bytes;
  for (int i = 0; i < kCold; ++i) {
    std::uint64_t at = random() % (history.record_count() - kNear);
    const std::uint64_t made_before = counts.records, bytes_before = counts.bytes;
    times.push_back(seconds([&] { found += history.record({at})->insns; }));
    made.push_back(counts.records - made_before);
    bytes.push_back(counts.bytes - bytes_before);
  }
  for (auto* numbers : {&made, &bytes}) std::sort(numbers->begin(), numbers->end());
  std::sort(times.begin(), times.end());
  constexpr int kMost = kCold * 99 / 100;
  fmt::print(
      "a record at random, anywhere               {:10.3f} ms median, {:.3f} ms of 99 %, {:.3f} ms "
      "worst of {}\n",
      times[kCold / 2] * 1e3, times[kMost] * 1e3, times.back() * 1e3, kCold);
  fmt::print(
      "  records made for one                     {:10} median, {} of 99 %, {} worst; bytes read "
      "{}, {}, {}\n",
      made[kCold / 2], made[kMost], made.back(), bytes[kCold / 2], bytes[kMost], bytes.back());
  if (found == 0) fmt::print("no instructions at all\n");
}

double bench_index(const Buffer& buffer) {
  double memory = resident_mib();
  Counts counts;
  std::optional<History> history;
  double all = seconds([&] { history.emplace(open(buffer, Numbers::kFromOldest, counts)); });
  double mib = static_cast<double>(buffer.trace.size()) / (1 << 20);
  auto insns = static_cast<double>(history->instructions());
  fmt::print(
      "all of it counted                          {:10.2f} s  {:.0f} MiB/s  {:.0f} M "
      "instructions, {:.0f} M/s, {} gaps\n",
      all, mib / all, insns * 1e-6, insns / all * 1e-6, history->gaps());
  fmt::print(
      "kept beside the trace                      {:10.1f} MiB  {:.4f} bytes an "
      "instruction, {:.4f} with the trace; memory grew by {:.1f} MiB\n",
      static_cast<double>(history->index_size_bytes()) / (1 << 20),
      static_cast<double>(history->index_size_bytes()) / insns,
      static_cast<double>(history->index_size_bytes() + buffer.trace.size()) / insns,
      resident_mib() - memory);
  bench_random_records(*history, counts);
  return mib / all;
}

// Nothing but decoding: all segments on as many threads, their records made and dropped.
void decode_all(const Buffer& buffer, unsigned threads) {
  pt::DecoderConfig config;
  config.first_epoch = buffer.code->newest();
  const auto segments = pt::find_segments(buffer.trace, PtSegmentsOptions::kLeast_bytes);
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    pt::SegmentDecoder decoder(buffer.trace, *buffer.code, config);
    std::vector<BranchRecord> records;
    for (std::size_t i; (i = next++) < segments.size();) {
      records.clear();
      decoder.decode(segments[i]).records(records);
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

// In turns, the least of each: other programs take time from all of them.
void bench_counting_against_decoding(Buffer buffer) {
  buffer.trace.resize(std::min(buffer.trace.size(), kShared_bytes));
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  Counts counts;
  double decoding = 1e9, counting = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    decoding = std::min(decoding, seconds([&] { decode_all(buffer, threads); }));
    counting = std::min(counting, seconds([&] { open(buffer, Numbers::kFromOldest, counts); }));
  }
  fmt::print(
      "counting {} MiB, on {} threads             {:10.2f} times as fast as making their records\n",
      buffer.trace.size() >> 20, threads, decoding / counting);
}

// --- libipt ----------------------------------------------------------------------------------

int read_code(std::uint8_t* bytes, std::size_t size, const pt_asid*, std::uint64_t ip,
              void* context) {
  const Buffer& buffer = *static_cast<const Buffer*>(context);
  std::size_t read = buffer.code->read({ip}, {bytes, size}, buffer.code->newest());
  return read == 0 ? -pte_nomap : static_cast<int>(read);
}

std::uint64_t decode_blocks(pt_block_decoder* decoder) {
  std::uint64_t insns = 0;
  while (pt_blk_sync_forward(decoder) >= 0) {
    for (int status = pts_event_pending; status >= 0 && (status & pts_eos) == 0;) {
      pt_event event;
      while (status >= 0 && (status & pts_event_pending) != 0)
        status = pt_blk_event(decoder, &event, sizeof event);
      if (status < 0) break;
      pt_block block{};
      status = pt_blk_next(decoder, &block, sizeof block);
      insns += block.ninsn;
    }
  }
  return insns;
}

void bench_libipt(const Buffer& buffer, double ours_mib) {
  ByteSpan trace = ByteSpan(buffer.trace).first(std::min(kPeer_bytes, buffer.trace.size()));
  pt_config config;
  pt_config_init(&config);
  config.begin = const_cast<std::uint8_t*>(trace.data());
  config.end = config.begin + trace.size();
  pt_image* image = pt_image_alloc(nullptr);
  pt_image_set_callback(image, &read_code, const_cast<Buffer*>(&buffer));
  pt_block_decoder* decoder = pt_blk_alloc_decoder(&config);
  pt_blk_set_image(decoder, image);
  std::uint64_t insns = 0;
  double time = seconds([&] { insns = decode_blocks(decoder); });
  pt_blk_free_decoder(decoder);
  pt_image_free(image);
  double mib = static_cast<double>(trace.size()) / (1 << 20) / time;
  fmt::print(
      "libipt's blocks, code by callback          {:10.2f} s for {} MiB  {:.2f} MiB/s  "
      "{:.0f} M instructions/s; counting all is {:.0f} times as fast\n",
      time, trace.size() >> 20, mib, static_cast<double>(insns) / time * 1e-6, ours_mib / mib);
}

int bench_debuggers() {
  const std::string command =
      "python3 " TAILTRACE_SOURCE_DIR "/tests/bench/history_peers.py " TAILTRACE_BINARY_DIR;
  return std::system(command.c_str()) == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  if (shows_usage(argc, argv, "history_bench [--mib=N] [PROGRAM ARG...]")) return 0;
  std::size_t mib = 1024;
  std::vector<std::string> program(argv + 1, argv + argc);
  if (!program.empty() && program.front().starts_with("--mib=")) {
    mib = std::max(1ul, std::strtoul(program.front().c_str() + 6, nullptr, 10));
    program.erase(program.begin());
  }
  if (program.empty())
    program = {"/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"};
  Result<Buffer> buffer = make_buffer(program, mib << 20);
  if (!buffer) {
    fmt::print("{}\n", buffer.error().to_string());
    return 1;
  }
  fmt::print("{} MiB of Intel PT: {:.1f} MiB of `{}`, repeated\n", buffer->trace.size() >> 20,
             static_cast<double>(buffer->once_bytes) / (1 << 20), program.front());
  bench_first_screen(*buffer);
  bench_counting_against_decoding(*buffer);
  bench_libipt(*buffer, bench_index(*buffer));
  *buffer = {};
  std::fflush(stdout);
  return bench_debuggers();
}

}  // namespace
}  // namespace tailtrace

int main(int argc, char** argv) { return tailtrace::run(argc, argv); }
