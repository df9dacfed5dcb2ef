#include "plugin/server/lldb/lldb_switches.h"

#include <cstring>

#include "decoder/perf/abi.h"

namespace tailtrace {
namespace {

// Source: include/uapi/linux/perf_event.h, PERF_RECORD_SWITCH_CPU_WIDE with sample_id_all and
// PERF_SAMPLE_TID | PERF_SAMPLE_TIME.
struct SwitchRecord {
  std::uint32_t type = perf::kRecordSwitchCpuWide;
  std::uint16_t misc = 0;
  std::uint16_t size_bytes = 32;
  std::uint32_t other_pid = 0, other_tid = 0;  // 0: the processor idles
  std::uint32_t pid = 0, tid = 0;
  std::uint64_t time_ns = 0;
};
static_assert(sizeof(SwitchRecord) == 32);

// Time that goes from ticks to nanoseconds and back may lose a little.
constexpr std::uint64_t kMargin_ns = 1000;

}  // namespace

std::string lldb_switches(ThreadId thread, std::uint64_t oldest, std::uint64_t newest,
                          const perf::TimeConversion& conversion) {
  if (oldest == 0) return {};
  SwitchRecord in, out;
  in.pid = out.pid = static_cast<std::uint32_t>(thread.pid);
  in.tid = out.tid = static_cast<std::uint32_t>(thread.tid);
  in.time_ns = conversion.to_ns(oldest) - kMargin_ns;
  out.misc = perf::kMiscSwitchOut;
  out.time_ns = conversion.to_ns(newest) + kMargin_ns;
  std::string bytes(2 * sizeof in, '\0');
  std::memcpy(bytes.data(), &in, sizeof in);
  std::memcpy(bytes.data() + sizeof in, &out, sizeof out);
  return bytes;
}

}  // namespace tailtrace
