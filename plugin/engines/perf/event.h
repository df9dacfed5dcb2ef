// Event: one open perf event and what is mapped of it: the control page, a data ring, an AUX area.
//
// Threading: one thread at a time. The kernel writes into the mappings at any time the watched
// thread runs, unless a Quiet holds it off.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/perf/abi.h"
#include "decoder/perf/clock.h"
#include "decoder/perf/data_ring.h"
#include "plugin/engines/perf/kernel.h"
#include "plugin/engines/perf/refusal.h"

namespace tailtrace::perf {

// Attributes that all our events share: user code only, closed on exec, the size that headers know.
perf_event_attr plain_attr(std::uint32_t type, std::uint64_t config);

class Event {
 public:
  // Errors: all that explain() tells.
  static Result<Event> open(Kernel& kernel, Purpose purpose, const perf_event_attr& attr,
                            Target target, const Event* leader = nullptr);

  Event(Event&& other) noexcept { *this = std::move(other); }
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Who may write decides what a full ring does: mapped read-only it is overwritten, else the
  // kernel stops and counts what is lost.
  enum class WhenFull { kOverwrite, kStop };

  // Maps the control page and a ring of so many bytes, 0 or a power of two that pages divide.
  // REQUIRES: not mapped yet.
  Result<void> map_ring(std::uint64_t size_bytes, WhenFull when_full);

  // The same with a size that is halved while the kernel refuses, down to a page. The refusal of
  // the first size is kept in shortened(), with what is used instead.
  Result<void> map_largest_ring(std::uint64_t size_bytes, WhenFull when_full);
  // Maps an AUX area, its size halved as well. Returns what was got.
  // REQUIRES: the ring is mapped, whatever its size.
  Result<std::uint64_t> map_aux(std::uint64_t size_bytes, WhenFull when_full);
  const std::optional<Error>& shortened() const { return shortened_; }

  ByteSpan ring() const { return ring_; }
  ByteSpan aux() const { return aux_; }
  std::uint64_t data_head() const { return head(kPageDataHead); }
  std::uint64_t aux_head() const { return head(kPageAuxHead); }
  // Tells the kernel that all before this was taken. REQUIRES: mapped with WhenFull::kStop.
  void set_data_tail(std::uint64_t tail) { set_tail(kPageDataTail, tail); }
  void set_aux_tail(std::uint64_t tail) { set_tail(kPageAuxTail, tail); }

  // The control page's clock; nothing when the kernel offers none.
  std::optional<TimeConversion> time_conversion() const;

  // Whether it was opened or enabled to record; one that disabled itself was, too.
  bool is_on() const { return is_on_; }
  Result<void> enable(bool whole_group = false);
  Result<void> disable(bool whole_group = false);
  // Samples are held back from the ring, and counted as lost with the next. REQUIRES: a ring.
  Result<void> pause_output(bool paused);
  // What the kernel would write into a ring of this event goes into the other's, and so does its
  // trace. REQUIRES: the other is mapped, this one is not; both watch the same CPU.
  Result<void> write_into(const Event& other);
  // Address filters, as "filter 0x1000/0x200@/path/to/file".
  Result<void> set_filter(const std::string& filter);
  // After so many more hits the event disables itself.
  Result<void> refresh(std::uint32_t hits);
  Result<void> change(const perf_event_attr& attr);
  Result<std::uint64_t> count() const;

  int fd() const { return fd_.get(); }
  Target target() const { return target_; }

 private:
  Event(Kernel& kernel, Purpose purpose, Target target, int fd, bool is_on)
      : kernel_(&kernel), purpose_(purpose), target_(target), fd_(fd), is_on_(is_on) {}
  std::uint64_t head(std::size_t offset) const;
  void set_tail(std::size_t offset, std::uint64_t tail);
  Result<void> control(unsigned long request, std::uint64_t argument, Step step = Step::kControl);
  Error refused(Step step, int error_number, std::uint64_t asked_bytes = 0) const;
  Result<void> make_writable();
  int try_ring(std::uint64_t size_bytes, WhenFull when_full);
  // Whether half the size may do; the first refusal is noted.
  bool shorten(Step step, int error, std::uint64_t size_bytes);
  void tell_used(std::uint64_t size_bytes);

  struct Mapping {
    void* address = nullptr;
    std::size_t size = 0;
  };

  Kernel* kernel_ = nullptr;
  Purpose purpose_ = Purpose::kPt;
  Target target_;
  UniqueFd fd_;
  bool is_on_ = false;
  std::vector<Mapping> mappings_;
  std::uint8_t* page_ = nullptr;
  bool page_writable_ = false;
  ByteSpan ring_;
  ByteSpan aux_;
  std::optional<Error> shortened_;
};

// While one lives the event writes nothing, and all it has written shows. The kernel tells of a
// stop before the stopped thread has left its CPU, and only then brings heads up to date: disabling
// waits for that, whoever traces the thread. One that is still to be enabled stays as it is.
class Quiet {
 public:
  explicit Quiet(Event& event)
      : event_(event), was_on_(event.is_on() && event.disable().has_value()) {}
  ~Quiet() {
    if (was_on_) (void)event_.enable().has_value();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  Event& event_;
  bool was_on_;
};

// What a backward ring holds, oldest first, though the kernel may write into it: it is read again
// until nothing was written meanwhile. Errors: as read_backward_ring(); kSystem when it never is.
struct StillRing {
  RecordList records;
  std::uint64_t head = 0;  // as it was when they were read
};
Result<StillRing> read_still(const Event& event);

std::size_t page_size();

// A size that can be mapped: `wanted_bytes` or more, at least a page.
std::uint64_t mappable_size(std::uint64_t wanted_bytes);

}  // namespace tailtrace::perf
