// MarkerSet: the markers of one thread, which share its four debug registers with each other, with
// other perf events and with the debugger's own breakpoints.
//
// A pinned marker has a register or is refused. A flexible one has a register as long as nobody
// needs it more: it gives way to a pinned one, and to a debugger that asks, waits, and gets one
// again when one is free. What it logged before it gave way is kept.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "plugin/engines/perf/breakpoints.h"

namespace tailtrace::perf {

class MarkerSet {
 public:
  // `ring_bytes` of log for each; a power of two that pages divide. `kernel` must outlive the set.
  MarkerSet(Kernel& kernel, std::int32_t tid, std::uint64_t ring_bytes)
      : kernel_(&kernel), tid_(tid), ring_bytes_(ring_bytes) {}

  // Adds one, as number size(). Errors: as Marker::open; with no register free for a pinned one
  // although no flexible one is left that could give way.
  Result<void> add(const BreakpointSpec& spec);

  std::size_t size() const { return places_.size(); }
  // Whether it has no register now. REQUIRES: number < size().
  bool waits(std::size_t number) const { return !places_[number].marker; }

  // The newest hits, `limit` at most, also those from before it had to wait; their count is exact
  // but for the time that it waited. REQUIRES: number < size().
  Result<MarkerLog> read(std::size_t number, std::uint64_t limit);

  // The same of all, by number.
  Result<std::map<std::size_t, MarkerLog>> read_all(std::uint64_t limit);

  // Makes a register free for somebody else, a debugger: the newest flexible marker gives way.
  // False when there is none.
  bool give_way();
  // Gives registers to those that wait, as far as there are any, in their order.
  void retry();

  // Of perf's clock, to the hardware's; nothing where the kernel offers none.
  std::optional<TimeConversion> time_conversion() const;

  // Markers that had to give way, or wait, since the last call.
  std::vector<Error> take_remarks();

 private:
  struct Place {
    BreakpointSpec spec;
    std::optional<Marker> marker;
    MarkerLog before;  // of the markers that it had before
  };
  Result<void> open(Place& place);
  bool none_is_free() const;

  Kernel* kernel_;
  std::int32_t tid_;
  std::uint64_t ring_bytes_;
  std::vector<Place> places_;
  std::vector<Error> remarks_;
};

}  // namespace tailtrace::perf
