// LLDB's bundles from anywhere, kept by thread and by processor: trace.json, a raw trace and
// context switches end in histories or in an error.
#include <cassert>
#include <fstream>

#include "decoder/bundle/lldb_history.h"
#include "decoder/history/history.h"
#include "decoder/pt/packets/packet_writer.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/perf_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxThreads = 4;
constexpr int kMaxItems = 500;

// The input is a trace.json, this, a raw trace, this, and context switches.
constexpr std::string_view kSeam = "\n@@\n";

constexpr std::string_view kByThread = R"({"type": "intel-pt",
  "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
  "processes": [{"pid": 40, "triple": "x86_64-*-linux",
    "threads": [{"tid": 41, "iptTrace": "trace"}, {"tid": 42, "iptTrace": null}],
    "modules": [{"file": null, "systemPath": "/bin/true", "loadAddress": 65536,
                 "uuid": "01-AB"}]}]})";

constexpr std::string_view kByCpu = R"({"type": "intel-pt",
  "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
  "tscPerfZeroConversion": {"timeMult": 1, "timeShift": 0, "timeZero": "0"},
  "cpus": [{"id": 1, "iptTrace": "trace", "contextSwitchTrace": "switches"}], "kernel": null,
  "processes": [{"pid": 40, "triple": "x86_64-*-linux", "threads": [{"tid": 41}],
    "modules": [{"file": null, "systemPath": "/bin/true", "loadAddress": "0x10000"}]}]})";

constexpr std::string_view kOfKernel = R"({"type": "intel-pt",
  "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 85, "stepping": 4},
  "tscPerfZeroConversion": {"timeMult": 1, "timeShift": 0, "timeZero": 0},
  "cpus": [{"id": 1, "iptTrace": "trace", "contextSwitchTrace": "switches"}],
  "kernel": {"file": "trace", "loadAddress": "0x10000"}})";

const TempFolder& folder() {
  static const TempFolder made;
  return made;
}

void put(const std::string& name, std::string_view text) {
  std::ofstream(folder().file(name), std::ios::binary | std::ios::trunc) << text;
}

Bytes raw_trace() {
  pt::PacketWriter out;
  for (std::uint64_t ip : {0x12400u, 0x12800u}) {
    out.psb();
    out.tsc(ip);
    out.mode_exec(CodeMode::k64);
    out.fup({ip});
    out.psbend();
    out.tnt(true);
    out.tip({ip + 64});
  }
  return out.take();
}

// One in, one out, of thread 41 (include/uapi/linux/perf_event.h, SWITCH_CPU_WIDE).
Bytes context_switches() {
  constexpr std::uint32_t kSwitchCpuWide = 15;
  constexpr std::uint16_t kOut = 1 << 13;
  constexpr std::uint64_t kThread = std::uint64_t{41} << 32 | 40;
  Bytes bytes = perf_record(kSwitchCpuWide, 0, {0, kThread, 0x12000});
  Bytes out = perf_record(kSwitchCpuWide, kOut, {0, kThread, 0x13000});
  bytes.insert(bytes.end(), out.begin(), out.end());
  return bytes;
}

// Up to the next seam, which goes with it.
std::string_view take(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(kSeam), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + kSeam.size(), rest.size()));
  return taken;
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  const Bytes trace = raw_trace(), switches = context_switches();
  std::vector<Bytes> seeds;
  for (std::string_view description : {kByThread, kByCpu, kOfKernel}) {
    std::string text(description);
    text.append(kSeam).append(as_text(trace)).append(kSeam).append(as_text(switches));
    ByteSpan bytes = as_bytes(text);
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

void fuzz_one(ByteSpan input) {
  std::string_view rest = as_text(input);
  put(kLldbBundleName, take(rest));
  put("trace", take(rest));
  put("switches", rest);
  auto recording = LldbRecording::open(folder().file(kLldbBundleName));
  if (!recording) {
    assert(!recording.error().why.empty());
    return;
  }
  std::size_t left = kMaxThreads;
  for (ThreadId thread : (*recording)->threads()) {
    if (left-- == 0) break;
    auto opened = (*recording)->open_thread(thread);
    if (!opened) continue;
    HistorySettings newest;
    newest.numbers = HistorySettings::Numbers::kFromNewest;
    History history(opened->frame, opened->source, newest);
    HistoryCursor cursor(history);
    int items = kMaxItems;
    for (cursor.seek_to_newest(); cursor.valid() && items > 0; cursor.prev()) --items;
  }
}

}  // namespace tailtrace
