// What a snapshot of an overwritten buffer costs before anything is decoded, against memcpy of as
// many bytes: putting an AUX area in order and copying it; looking at every sample of a data ring,
// which is not copied. And what a stop costs at which nobody asks.
//
//   snapshot_bench [MAX_MIB]        sizes from 1 MiB on, times four, up to 1024 MiB
//
// All destinations are fresh memory, as in a real snapshot, for memcpy as well. Times are CPU times
// of the thread, the least of several rounds. One line per size:
//
//   SIZE  memcpy ms  copy ms  ratio  |  view ns (nothing is copied)  |  samples ms  ratio
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "decoder/perf/aux_area.h"
#include "decoder/perf/data_ring.h"
#include "plugin/engines/perf/perf_engine.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/usage.h"

namespace tailtrace::perf {
namespace {

constexpr int kRounds = 7;
constexpr std::uint16_t kSample_bytes = 24;

double cpu_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Nothing of what was done may be left out as unused.
void use(const void* bytes) { __asm__ volatile("" : : "r"(bytes) : "memory"); }

template <class Run>
double least_seconds(Run run) {
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    double begin = cpu_seconds();
    run();
    least = std::min(least, cpu_seconds() - begin);
  }
  return least;
}

// A buffer that went round, full of samples of one size.
Bytes full_ring(std::size_t size) {
  Bytes ring(size, 0x5a);
  const RecordHeader header{kRecordSample, 0, kSample_bytes};
  for (std::size_t at = 0; at + kSample_bytes <= size; at += kSample_bytes)
    std::memcpy(ring.data() + at, &header, sizeof header);
  return ring;
}

void measure(std::size_t size) {
  const Bytes ring = full_ring(size);
  // Seams where they hurt: in the middle, and off every boundary.
  const std::uint64_t head = size / 2 + 11;
  const double plain = least_seconds([&] {
    std::unique_ptr<std::uint8_t[]> copy(new std::uint8_t[size]);
    std::memcpy(copy.get(), ring.data(), size);
    use(copy.get());
  });
  const double ordered = least_seconds([&] {
    Bytes copy = without_leading_zeros(*order_aux_area(ring, head, AuxHead::kOffset)).joined();
    use(copy.data());
  });
  const double view = least_seconds([&] {
    for (int i = 0; i < 1000; ++i) {
      auto ordered_view = order_aux_area(ring, head, AuxHead::kOffset);
      use(&ordered_view);
    }
  });
  const std::uint64_t written = size / kSample_bytes * kSample_bytes;
  const double samples = least_seconds([&] {
    auto records = read_fixed_records(ring, written, {kRecordSample, 0, kSample_bytes}, ~0ull);
    use(&*records);
  });
  fmt::print(
      "{:5} MiB  memcpy {:8.3f} ms  copy {:8.3f} ms  {:4.2f}x  |  view {:5.1f} ns  |  "
      "samples {:8.3f} ms  {:4.2f}x\n",
      size >> 20, plain * 1e3, ordered * 1e3, ordered / plain, view * 1e6, samples * 1e3,
      samples / plain);
  std::fflush(stdout);
}

// The thread stops and goes on; nobody asks for anything.
void idle_stops() {
  FakeKernel kernel;
  kernel.put_pmu("intel_bts", 9);
  PerfConfig config;
  config.buffer_bytes = 1 << 20;
  PerfEngine engine(kernel, Hardware::kBts, config);
  const ThreadId thread{1, 1};
  if (!engine.start(thread)) std::abort();
  const std::size_t before = kernel.controlled().size() + kernel.opened().size();
  constexpr int kStops = 1'000'000;
  const double seconds = least_seconds([&] {
    for (int i = 0; i < kStops; ++i) {
      bool recorded = engine.is_recording(thread);
      use(&recorded);
    }
  });
  const std::size_t calls = kernel.controlled().size() + kernel.opened().size() - before;
  fmt::print("a stop with nothing asked: {} system calls, {:.1f} ns\n", calls,
             seconds / kStops * 1e9);
}

}  // namespace
}  // namespace tailtrace::perf

int main(int argc, char** argv) {
  if (tailtrace::shows_usage(argc, argv, "snapshot_bench [MAX_MIB]")) return 0;
  const std::size_t max_mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1024;
  for (std::size_t mib = 1; mib <= max_mib; mib *= 4) tailtrace::perf::measure(mib << 20);
  tailtrace::perf::idle_stops();
}
