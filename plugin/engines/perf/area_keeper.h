// AreaKeeper: makes room in AUX areas that the kernel does not overwrite by itself, so that they
// hold the newest part all the same. Nothing is copied: the kernel is told that all was taken as
// soon as a part of the area is full, and what was there stays until it is written over. Of such
// areas the kernel tells where every stretch lies, which it does not of those that it overwrites.
//
// Threading: has a thread of its own, which waits for the kernel. Everybody else holds it off with
// hold() while he reads the areas or calls anything else.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "decoder/bts/cpu_area.h"
#include "decoder/perf/clock.h"
#include "plugin/engines/perf/event.h"

namespace tailtrace::perf {

class AreaKeeper {
 public:
  // `cpus`: the events of each; the first of them has the area, and an overwriting ring of what the
  // kernel tells, with TID and TIME. They must neither move nor end before the keeper does.
  // Errors: kSystem when there can be no thread.
  static Result<std::unique_ptr<AreaKeeper>> start(std::vector<std::span<Event>> cpus,
                                                   TimeConversion clock);
  ~AreaKeeper();
  AreaKeeper(const AreaKeeper&) = delete;
  AreaKeeper& operator=(const AreaKeeper&) = delete;

  std::unique_lock<std::mutex> hold() { return std::unique_lock(mutex_); }
  // The rest REQUIRES: held.

  // Makes room on all CPUs. Where there was none in time the kernel cut the trace, and the pause
  // lasts until somebody calls went_on().
  void make_room();
  // Nothing was recorded between the two times, but is again.
  void went_on(std::uint64_t since_ns, std::uint64_t now_ns);
  // When nothing was recorded on a CPU; the last of them may last still.
  std::vector<bts::Pause> pauses(std::size_t cpu) const;
  std::uint64_t now_ns() const;

 private:
  struct Cpu {
    std::span<Event> events;
    std::uint64_t seen_head = 0;               // of the ring
    std::optional<std::uint64_t> cut_ns = {};  // since then nothing is recorded
    std::vector<bts::Pause> pauses = {};
  };

  AreaKeeper(std::vector<std::span<Event>> cpus, TimeConversion clock);
  void wait_and_keep();
  void make_room(Cpu& cpu);
  void note(Cpu& cpu, bts::Pause pause);
  void switch_on_again(Cpu& cpu);

  std::vector<Cpu> cpus_;
  TimeConversion clock_;
  UniqueFd stop_;
  std::mutex mutex_;
  std::thread thread_;
};

}  // namespace tailtrace::perf
