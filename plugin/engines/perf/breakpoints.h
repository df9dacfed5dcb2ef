// Hardware breakpoints as perf events: they count and log without stopping the thread. Each takes
// one of the four debug registers of a thread, which debuggers' own hardware breakpoints and
// watchpoints share with them.
//
// They need no PMU: they work on every machine where perf events do. Some virtual machines, though,
// forget now and then which register was hit (5 of a million hits on a busy one): the kernel then
// sends the thread a SIGTRAP with si_code TRAP_BRKPT. A tracer leaves that signal out, and the same
// hit comes again and counts.
//
// Threading: one thread at a time.
#pragma once

#include <vector>

#include "decoder/perf/events.h"
#include "plugin/engines/perf/event.h"
#include "plugin/engines/perf/slot_book.h"

namespace tailtrace::perf {

enum class BreakOn { kExecute, kWrite, kAccess };

struct BreakpointSpec {
  std::string name = "a marker";  // what messages call it
  Address address;
  BreakOn on = BreakOn::kExecute;
  std::uint8_t size_bytes = 8;  // of data: 1, 2, 4 or 8; the address is a multiple of it
  std::uint64_t registers = 0;  // to be logged: one bit each, as asm/perf_regs.h numbers them
  // The hit lets an AUX trace of the leader go on or pause it (Linux 6.13 and later).
  AuxAction action = AuxAction::kNone;
  // The hit is a SIGTRAP (si_code TRAP_PERF) at the instruction: the thread's tracer sees it stop.
  // Whoever resumes it leaves the signal out. Linux 5.13 and later; ends when the program executes
  // another one.
  bool stop = false;
  // It needs its debug register; else it gives way where others do (MarkerSet).
  bool pinned = true;
};

// One hit, as logged. Positions count from 0, the first hit ever.
struct MarkerHit {
  std::uint64_t number = 0;
  ThreadId thread;
  Address ip;
  std::uint64_t time_ns = 0;  // of perf's clock
  std::vector<std::uint64_t> registers;
};

// What a marker holds: the newest hits, and how many there were in all.
struct MarkerLog {
  std::vector<MarkerHit> hits;  // oldest first; a hole in their numbers is hits not logged
  std::uint64_t count = 0;      // of hits ever, exact
};

// A marker logs each hit into a backward ring of its own, overwriting the oldest.
class Marker {
 public:
  // Watches a thread from now on. `ring_bytes` is a power of two that pages divide.
  // Errors: kUsage for a spec that no debug register can do; all that explain() tells: with no
  // register free, who holds perf events.
  static Result<Marker> open(Kernel& kernel, std::int32_t tid, const BreakpointSpec& spec,
                             std::uint64_t ring_bytes, const Event* leader = nullptr);

  // The newest hits, `limit` at most. Output is paused while it is read, so that the thread may
  // run on; hits meanwhile are counted and not logged.
  Result<MarkerLog> read(std::uint64_t limit);

  Result<std::uint64_t> count() const { return event_.count(); }
  std::optional<TimeConversion> time_conversion() const { return event_.time_conversion(); }
  // Moves it to another address; what it watches for stays.
  Result<void> move_to(Address address);
  // It ends itself after so many more hits. REQUIRES: hits is not 0.
  Result<void> only(std::uint32_t hits);

 private:
  Marker(Event event, const perf_event_attr& attr, const std::string& name)
      : event_(std::move(event)), attr_(attr), hold_(event_.target().tid, name) {}

  Event event_;
  perf_event_attr attr_;
  SlotHold hold_;
};

// An alarm tells of hits while the thread runs on: somebody waits for it. Each takes a debug
// register of its own, beside a marker of the same address.
class Alarm {
 public:
  // Errors: as Marker::open.
  static Result<Alarm> open(Kernel& kernel, std::int32_t tid, const BreakpointSpec& spec);

  // The hits since the last call, oldest first; none when there is none within the time (-1:
  // however long), or the thread ended. A hole in their numbers is hits that came faster than they
  // were taken.
  Result<std::vector<MarkerHit>> wait(int timeout_ms);
  // Of hits ever, exact.
  Result<std::uint64_t> count() const { return event_.count(); }
  int fd() const { return event_.fd(); }

 private:
  Alarm(Event event, const perf_event_attr& attr, const std::string& name)
      : event_(std::move(event)), attr_(attr), hold_(event_.target().tid, name) {}

  Event event_;
  perf_event_attr attr_;
  SlotHold hold_;
  std::uint64_t tail_ = 0;
};

// How many debug registers of a thread are free for perf events now: tried, by opening and closing.
Result<int> free_breakpoint_slots(Kernel& kernel, std::int32_t tid);

}  // namespace tailtrace::perf
