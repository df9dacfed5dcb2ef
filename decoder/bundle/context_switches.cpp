#include "decoder/bundle/context_switches.h"

#include <optional>

namespace tailtrace {
namespace {

constexpr std::uint32_t kSwitchCpuWide = 15;
constexpr std::uint16_t kMiscSwitchOut = 1 << 13;
constexpr std::size_t kHeader_bytes = 8, kSwitch_bytes = 32;

struct Switch {
  ThreadId thread;
  std::uint64_t tsc = 0;
  bool out = false;
};

// The clock's zero may lie before the epoch: all of it is modulo 2^64.
std::uint64_t to_tsc(const perf::TimeConversion& clock, std::uint64_t ns) {
  std::uint64_t time = ns - clock.zero_ns;
  std::uint64_t whole = time / clock.mult, rest = time % clock.mult;
  return (whole << clock.shift) + (rest << clock.shift) / clock.mult;
}

Switch read_switch(ByteSpan record, const perf::TimeConversion& clock) {
  return {{load<std::int32_t>(record, 16), load<std::int32_t>(record, 20)},
          to_tsc(clock, load<std::uint64_t>(record, 24)),
          (load<std::uint16_t>(record, 4) & kMiscSwitchOut) != 0};
}

CpuExecution begun(const Switch& in, std::uint64_t end, bool end_known) {
  return {in.thread, in.tsc, end, true, end_known};
}
CpuExecution ended(const Switch& out, std::uint64_t begin) {
  return {out.thread, begin, out.tsc, false, true};
}

// What two neighbours tell; `before` is none for the first switch.
void add_between(const std::optional<Switch>& before, const Switch& now,
                 std::vector<CpuExecution>& found) {
  if (!before) {
    if (now.out) found.push_back(ended(now, 0));
    return;
  }
  if (!before->out && now.out && before->thread == now.thread) {
    found.push_back(begun(*before, now.tsc, true));
    return;
  }
  if (!before->out) found.push_back(begun(*before, now.tsc - 1, false));
  if (now.out) found.push_back(ended(now, before->tsc + 1));
}

}  // namespace

Result<std::vector<CpuExecution>> read_context_switches(ByteSpan records,
                                                        const perf::TimeConversion& clock) {
  auto bad = [](std::size_t offset, const char* why) {
    return fail(ErrorCode::kBadInput, "cannot use the context switches",
                "the record at byte " + std::to_string(offset) + " " + why);
  };
  if (clock.mult == 0 || clock.shift >= 64)
    return fail(ErrorCode::kBadInput, "cannot use the context switches", "their clock is unknown");
  std::vector<CpuExecution> found;
  std::optional<Switch> before;
  for (std::size_t offset = 0; offset < records.size();) {
    if (records.size() - offset < kHeader_bytes) return bad(offset, "is cut off");
    std::size_t size = load<std::uint16_t>(records, offset + 6);
    if (size < kHeader_bytes) return bad(offset, "has no size");
    if (size > records.size() - offset) return bad(offset, "is cut off");
    if (load<std::uint32_t>(records, offset) == kSwitchCpuWide) {
      if (size < kSwitch_bytes) return bad(offset, "is too short for a context switch");
      Switch now = read_switch(records.subspan(offset, size), clock);
      if (before && now.tsc <= before->tsc)
        return bad(offset, "is not later than the switch before it");
      add_between(before, now, found);
      before = now;
    }
    offset += size;
  }
  if (before && !before->out) found.push_back(begun(*before, ~0ull, false));
  return found;
}

}  // namespace tailtrace
