// The system calls that perf events are made of, as an object, so that every answer a kernel can
// give can be tried on a machine that would never give it. There is nothing to configure here: the
// one real kernel is real_kernel().
//
// Threading: real_kernel() may be used by any thread.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tailtrace::perf {

// What kernels know that older headers do not (include/uapi/linux/perf_event.h of Linux 6.13): what
// the hit of an event does to the AUX trace of its group's leader. It stands in the word behind
// attr.aux_sample_size.
enum class AuxAction : std::uint32_t { kNone = 0, kStartPaused = 1, kPause = 2, kResume = 4 };

void set_aux_action(perf_event_attr& attr, AuxAction action);
AuxAction aux_action(const perf_event_attr& attr);

// Whom an event watches. tid 0 is the calling thread, -1 any; cpu -1 is any.
struct Target {
  std::int32_t tid = 0;
  std::int32_t cpu = -1;
};

// Calls answer as the system calls do, but for errors, which are -errno.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // `group` is the leader's descriptor or -1. The descriptor is closed by whoever called.
  virtual int open(const perf_event_attr& attr, Target target, int group) = 0;
  // On success stores the address in `map`.
  virtual int map(int fd, std::uint64_t offset, std::size_t size, int protection, void*& map) = 0;
  virtual int control(int fd, unsigned long request, std::uint64_t argument) = 0;
  // The event's count.
  virtual int read_count(int fd, std::uint64_t& count) = 0;
  // Put in front of every path under /proc and /sys; empty for this machine's own.
  virtual std::string root() const { return {}; }
};

Kernel& real_kernel();

}  // namespace tailtrace::perf
