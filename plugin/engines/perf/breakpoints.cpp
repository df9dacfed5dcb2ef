#include "plugin/engines/perf/breakpoints.h"

#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace tailtrace::perf {
namespace {

constexpr int kSlotsTried = 8;  // x86 has four

Result<perf_event_attr> breakpoint_attr(const BreakpointSpec& spec) {
  perf_event_attr attr = plain_attr(PERF_TYPE_BREAKPOINT, 0);
  attr.bp_addr = spec.address.value;
  attr.sample_period = 1;
  // The count that each sample carries numbers the hits, whatever was lost in between.
  attr.sample_type = kSampleIp | kSampleTid | kSampleTime | kSampleRead;
  if (spec.registers != 0) {
    attr.sample_type |= kSampleRegsUser;
    attr.sample_regs_user = spec.registers;
  }
  attr.write_backward = 1;
  set_aux_action(attr, spec.action);
  if (spec.stop) {
    attr.sigtrap = 1;
    attr.remove_on_exec = 1;
  }
  if (spec.on == BreakOn::kExecute) {
    attr.bp_type = HW_BREAKPOINT_X;
    attr.bp_len = sizeof(long);
    return attr;
  }
  bool fits = std::has_single_bit(spec.size_bytes) && spec.size_bytes <= 8;
  if (!fits || spec.address.value % spec.size_bytes != 0)
    return fail(ErrorCode::kUsage,
                fmt::format("cannot watch {} bytes at {:#x}", spec.size_bytes, spec.address.value),
                "a debug register watches 1, 2, 4 or 8 bytes at a multiple of that");
  attr.bp_type = spec.on == BreakOn::kWrite ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
  attr.bp_len = spec.size_bytes;
  return attr;
}

MarkerHit hit_of(Sample& sample) {
  MarkerHit hit;
  hit.number = sample.count.value_or(1) - 1;
  hit.thread = sample.thread.value_or(ThreadId{});
  hit.ip = sample.ip.value_or(Address{});
  hit.time_ns = sample.time_ns.value_or(0);
  hit.registers = std::move(sample.registers);
  return hit;
}

Result<MarkerLog> log_of(const RecordList& records, const perf_event_attr& attr,
                         std::uint64_t count, std::uint64_t limit) {
  MarkerLog log;
  log.count = count;
  RecordFormat format{attr.sample_type, false, 0, attr.sample_regs_user};
  for (std::size_t i = records.size(); i-- > 0 && log.hits.size() < limit;) {
    auto record = parse_record(records[i], format);
    if (!record) return fail(std::move(record.error()));
    if (auto* sample = std::get_if<Sample>(&record->body)) log.hits.push_back(hit_of(*sample));
  }
  std::reverse(log.hits.begin(), log.hits.end());
  return log;
}

}  // namespace

Result<Marker> Marker::open(Kernel& kernel, std::int32_t tid, const BreakpointSpec& spec,
                            std::uint64_t ring_bytes, const Event* leader) {
  auto attr = breakpoint_attr(spec);
  if (!attr) return fail(std::move(attr.error()));
  auto event = Event::open(kernel, Purpose::kBreakpoint, *attr, {tid, -1}, leader);
  if (!event) return fail(std::move(event.error()));
  if (auto ok = event->map_ring(ring_bytes, Event::WhenFull::kOverwrite); !ok)
    return fail(std::move(ok.error()));
  return Marker(std::move(*event), *attr, spec.name);
}

Result<MarkerLog> Marker::read(std::uint64_t limit) {
  if (auto ok = event_.pause_output(true); !ok) return fail(std::move(ok.error()));
  // A writer that was inside when the pause began moves the head once more; then it is still.
  Result<MarkerLog> log;
  for (std::uint64_t head = event_.data_head();;) {
    auto count = event_.count();
    auto records = read_backward_ring(event_.ring(), head);
    std::uint64_t now = event_.data_head();
    if (now != head) {
      head = now;
      continue;
    }
    if (!count)
      log = fail(std::move(count.error()));
    else if (!records)
      log = fail(std::move(records.error()));
    else
      log = log_of(*records, attr_, *count, limit);
    break;
  }
  if (auto ok = event_.pause_output(false); !ok && log) return fail(std::move(ok.error()));
  return log;
}

Result<void> Marker::move_to(Address address) {
  perf_event_attr moved = attr_;
  moved.bp_addr = address.value;
  if (auto ok = event_.change(moved); !ok) return ok;
  attr_ = moved;
  return {};
}

Result<void> Marker::only(std::uint32_t hits) {
  if (auto ok = event_.disable(); !ok) return ok;
  return event_.refresh(hits);
}

Result<Alarm> Alarm::open(Kernel& kernel, std::int32_t tid, const BreakpointSpec& spec) {
  auto attr = breakpoint_attr(spec);
  if (!attr) return fail(std::move(attr.error()));
  attr->write_backward = 0;
  attr->wakeup_events = 1;
  auto event = Event::open(kernel, Purpose::kBreakpoint, *attr, {tid, -1});
  if (!event) return fail(std::move(event.error()));
  if (auto ok = event->map_ring(page_size(), Event::WhenFull::kStop); !ok)
    return fail(std::move(ok.error()));
  return Alarm(std::move(*event), *attr, spec.name);
}

Result<std::vector<MarkerHit>> Alarm::wait(int timeout_ms) {
  pollfd waited{event_.fd(), POLLIN, 0};
  if (event_.data_head() == tail_ && ::poll(&waited, 1, timeout_ms) < 0 && errno != EINTR)
    return fail(system_error("cannot wait for a hardware breakpoint"));
  const std::uint64_t head = event_.data_head();
  auto records = read_forward_ring(event_.ring(), tail_, head);
  if (!records) return fail(std::move(records.error()));
  std::vector<MarkerHit> hits;
  const RecordFormat format{attr_.sample_type, false, 0, attr_.sample_regs_user};
  for (std::size_t i = 0; i < records->size(); ++i) {
    auto record = parse_record((*records)[i], format);
    if (!record) return fail(std::move(record.error()));
    if (auto* sample = std::get_if<Sample>(&record->body)) hits.push_back(hit_of(*sample));
  }
  tail_ = head;
  event_.set_data_tail(head);
  return hits;
}

Result<int> free_breakpoint_slots(Kernel& kernel, std::int32_t tid) {
  // Any address does: the events stay disabled.
  perf_event_attr attr = plain_attr(PERF_TYPE_BREAKPOINT, 0);
  attr.bp_type = HW_BREAKPOINT_W;
  attr.bp_len = HW_BREAKPOINT_LEN_8;
  attr.disabled = 1;
  std::vector<UniqueFd> held;
  while (held.size() < kSlotsTried) {
    attr.bp_addr = 0x10000 + 8 * held.size();
    int fd = kernel.open(attr, {tid, -1}, -1);
    if (fd == -ENOSPC) break;
    if (fd < 0) {
      Refusal refusal{Purpose::kBreakpoint, Step::kOpen, -fd, {tid, -1}, 0, &attr};
      return fail(explain(kernel, refusal));
    }
    held.emplace_back(fd);
  }
  return static_cast<int>(held.size());
}

}  // namespace tailtrace::perf
