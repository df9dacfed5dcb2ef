#include "plugin/engines/perf/area_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <x86intrin.h>

#include <system_error>

#include "decoder/base/no_signals.h"

namespace tailtrace::perf {
namespace {

constexpr RecordFormat kFormat = {kSampleTid | kSampleTime, true, 0, 0};
// Beyond that many, two that follow each other become one.
constexpr std::size_t kMostPauses = 4096;

// When the kernel cut the trace, by what it told since `seen_head`.
std::optional<std::uint64_t> find_cut(const StillRing& ring, std::uint64_t seen_head) {
  for (std::size_t i = first_of_newest(ring.records, seen_head - ring.head);
       i < ring.records.size(); ++i) {
    if (ring.records.header(i).type != kRecordAux) continue;
    auto record = parse_record(ring.records[i], kFormat);
    if (!record) continue;  // told when the area is read
    const auto& aux = std::get<AuxEvent>(record->body);
    if ((aux.flags & kAuxTruncated) != 0) return record->id.time_ns;
  }
  return std::nullopt;
}

}  // namespace

AreaKeeper::AreaKeeper(std::vector<std::span<Event>> cpus, TimeConversion clock)
    : clock_(clock), stop_(::eventfd(0, EFD_CLOEXEC)) {
  for (std::span<Event> events : cpus) cpus_.push_back({events});
}

Result<std::unique_ptr<AreaKeeper>> AreaKeeper::start(std::vector<std::span<Event>> cpus,
                                                      TimeConversion clock) {
  std::unique_ptr<AreaKeeper> keeper(new AreaKeeper(std::move(cpus), clock));
  if (!keeper->stop_) return fail(system_error("cannot keep areas from getting full"));
  NoSignals inherited;
  try {
    keeper->thread_ = std::thread([&of = *keeper] { of.wait_and_keep(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kSystem, "cannot keep areas from getting full", error.what());
  }
  return keeper;
}

AreaKeeper::~AreaKeeper() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
}

void AreaKeeper::wait_and_keep() {
  std::vector<pollfd> waited = {{stop_.get(), POLLIN, 0}};
  for (const Cpu& cpu : cpus_)
    for (const Event& event : cpu.events) waited.push_back({event.fd(), POLLIN, 0});
  for (;;) {
    if (::poll(waited.data(), waited.size(), -1) < 0) continue;
    if (waited.front().revents != 0) return;
    // Of a thread that is gone, with all that it made.
    for (pollfd& one : waited)
      if ((one.revents & (POLLHUP | POLLERR)) != 0) one.fd = -1;
    auto held = hold();
    for (Cpu& cpu : cpus_) {
      make_room(cpu);
      if (cpu.cut_ns) switch_on_again(cpu);
    }
  }
}

void AreaKeeper::make_room() {
  for (Cpu& cpu : cpus_) make_room(cpu);
}

void AreaKeeper::make_room(Cpu& cpu) {
  Event& area = cpu.events.front();
  area.set_aux_tail(area.aux_head());
  auto ring = read_still(area);
  if (!ring) return;  // told when the area is read
  if (!cpu.cut_ns) cpu.cut_ns = find_cut(*ring, cpu.seen_head);
  cpu.seen_head = ring->head;
}

// The kernel switched off the event that found no room, or left it switched on with nothing to do
// until its thread comes to the CPU again.
void AreaKeeper::switch_on_again(Cpu& cpu) {
  for (Event& event : cpu.events) {
    (void)event.disable().has_value();
    (void)event.enable().has_value();
  }
  note(cpu, {*cpu.cut_ns, now_ns()});
  cpu.cut_ns.reset();
}

void AreaKeeper::went_on(std::uint64_t since_ns, std::uint64_t now_ns) {
  for (Cpu& cpu : cpus_) {
    note(cpu, {std::min(cpu.cut_ns.value_or(since_ns), since_ns), now_ns});
    cpu.cut_ns.reset();
  }
}

void AreaKeeper::note(Cpu& cpu, bts::Pause pause) {
  if (cpu.pauses.size() == kMostPauses) {
    cpu.pauses[1].begin_ns = cpu.pauses[0].begin_ns;
    cpu.pauses.erase(cpu.pauses.begin());
  }
  cpu.pauses.push_back(pause);
}

std::vector<bts::Pause> AreaKeeper::pauses(std::size_t cpu) const {
  std::vector<bts::Pause> all = cpus_[cpu].pauses;
  if (cpus_[cpu].cut_ns) all.push_back({*cpus_[cpu].cut_ns, ~0ull});
  return all;
}

std::uint64_t AreaKeeper::now_ns() const { return clock_.to_ns(__rdtsc()); }

}  // namespace tailtrace::perf
