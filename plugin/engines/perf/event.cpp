#include "plugin/engines/perf/event.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace tailtrace::perf {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

std::uint64_t mappable_size(std::uint64_t wanted_bytes) {
  return std::bit_ceil(std::max<std::uint64_t>(wanted_bytes, page_size()));
}

perf_event_attr plain_attr(std::uint32_t type, std::uint64_t config) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  return attr;
}

Result<Event> Event::open(Kernel& kernel, Purpose purpose, const perf_event_attr& attr,
                          Target target, const Event* leader) {
  int fd = kernel.open(attr, target, leader == nullptr ? -1 : leader->fd());
  if (fd >= 0) return Event(kernel, purpose, target, fd, !attr.disabled);
  Refusal refusal;
  refusal.purpose = purpose;
  refusal.error_number = -fd;
  refusal.target = target;
  refusal.attr = &attr;
  return fail(explain(kernel, refusal));
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(kernel_, other.kernel_);
  std::swap(purpose_, other.purpose_);
  std::swap(target_, other.target_);
  std::swap(fd_, other.fd_);
  std::swap(is_on_, other.is_on_);
  std::swap(mappings_, other.mappings_);
  std::swap(page_, other.page_);
  std::swap(page_writable_, other.page_writable_);
  std::swap(ring_, other.ring_);
  std::swap(aux_, other.aux_);
  std::swap(shortened_, other.shortened_);
  return *this;
}

Event::~Event() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.address, mapping.size);
}

Error Event::refused(Step step, int error_number, std::uint64_t asked_bytes) const {
  Refusal refusal;
  refusal.purpose = purpose_;
  refusal.step = step;
  refusal.error_number = error_number;
  refusal.target = target_;
  refusal.asked_bytes = asked_bytes;
  return explain(*kernel_, refusal);
}

// Returns 0 or a negative error number.
int Event::try_ring(std::uint64_t size_bytes, WhenFull when_full) {
  assert(page_ == nullptr);
  const std::size_t size = page_size() + size_bytes;
  // Without a ring nothing can be overwritten, and an AUX area needs a page that can be written.
  page_writable_ = when_full == WhenFull::kStop || size_bytes == 0;
  void* map = nullptr;
  int error =
      kernel_->map(fd_.get(), 0, size, page_writable_ ? PROT_READ | PROT_WRITE : PROT_READ, map);
  if (error < 0) return error;
  mappings_.push_back({map, size});
  page_ = static_cast<std::uint8_t*>(map);
  ring_ = {page_ + page_size(), static_cast<std::size_t>(size_bytes)};
  return 0;
}

Result<void> Event::map_ring(std::uint64_t size_bytes, WhenFull when_full) {
  int error = try_ring(size_bytes, when_full);
  if (error < 0) return fail(refused(Step::kMapRing, -error, page_size() + size_bytes));
  return {};
}

bool Event::shorten(Step step, int error, std::uint64_t size_bytes) {
  if (!shortened_) shortened_ = refused(step, -error, size_bytes);
  return (error == -ENOMEM || error == -EPERM) && size_bytes / 2 >= page_size();
}

void Event::tell_used(std::uint64_t size_bytes) {
  if (shortened_) shortened_->now = fmt::format("{} KiB are used", size_bytes / 1024);
}

Result<void> Event::map_largest_ring(std::uint64_t size_bytes, WhenFull when_full) {
  for (std::uint64_t size = size_bytes;; size /= 2) {
    int error = try_ring(size, when_full);
    if (error == 0) {
      tell_used(size);
      return {};
    }
    if (!shorten(Step::kMapRing, error, size)) return fail(*shortened_);
  }
}

// The first mapping decides whether a ring is overwritten; a second, writable one of the same size
// lets us write into the control page of an overwritten ring all the same.
Result<void> Event::make_writable() {
  if (page_writable_) return {};
  const std::size_t size = page_size() + ring_.size();
  void* map = nullptr;
  int error = kernel_->map(fd_.get(), 0, size, PROT_READ | PROT_WRITE, map);
  if (error < 0) return fail(refused(Step::kMapRing, -error, size));
  mappings_.push_back({map, size});
  page_ = static_cast<std::uint8_t*>(map);
  page_writable_ = true;
  return {};
}

Result<std::uint64_t> Event::map_aux(std::uint64_t size_bytes, WhenFull when_full) {
  assert(page_ != nullptr && aux_.empty());
  if (auto ok = make_writable(); !ok) return fail(std::move(ok.error()));
  const std::uint64_t offset = page_size() + ring_.size();
  const int protection = when_full == WhenFull::kOverwrite ? PROT_READ : PROT_READ | PROT_WRITE;
  for (std::uint64_t size = size_bytes;; size /= 2) {
    std::memcpy(page_ + kPageAuxOffset, &offset, sizeof offset);
    std::memcpy(page_ + kPageAuxSize, &size, sizeof size);
    void* map = nullptr;
    int error = kernel_->map(fd_.get(), offset, size, protection, map);
    if (error == 0) {
      mappings_.push_back({map, size});
      aux_ = {static_cast<const std::uint8_t*>(map), size};
      tell_used(size);
      return size;
    }
    if (!shorten(Step::kMapAux, error, size)) return fail(*shortened_);
  }
}

std::uint64_t Event::head(std::size_t offset) const {
  assert(page_ != nullptr);
  // What the head covers was written before the head was.
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page_ + offset))
      .load(std::memory_order_acquire);
}

void Event::set_tail(std::size_t offset, std::uint64_t tail) {
  assert(page_writable_);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(page_ + offset))
      .store(tail, std::memory_order_release);
}

std::optional<TimeConversion> Event::time_conversion() const {
  assert(page_ != nullptr);
  std::atomic_ref<std::uint32_t> lock(*reinterpret_cast<std::uint32_t*>(page_ + kPageLock));
  std::uint8_t copy[kPageUsedSize_bytes];
  // The kernel writes while the lock is odd; it does so a few times a second at most.
  for (;;) {
    std::uint32_t before = lock.load(std::memory_order_acquire);
    std::memcpy(copy, page_, sizeof copy);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && before == lock.load(std::memory_order_relaxed)) break;
  }
  return read_time_conversion(copy);
}

Result<void> Event::control(unsigned long request, std::uint64_t argument, Step step) {
  int error = kernel_->control(fd_.get(), request, argument);
  if (error < 0) return fail(refused(step, -error));
  return {};
}

Result<void> Event::enable(bool whole_group) {
  auto ok = control(PERF_EVENT_IOC_ENABLE, whole_group ? PERF_IOC_FLAG_GROUP : 0);
  is_on_ |= ok.has_value();
  return ok;
}
Result<void> Event::disable(bool whole_group) {
  auto ok = control(PERF_EVENT_IOC_DISABLE, whole_group ? PERF_IOC_FLAG_GROUP : 0);
  is_on_ &= !ok.has_value();
  return ok;
}
Result<void> Event::pause_output(bool paused) {
  return control(PERF_EVENT_IOC_PAUSE_OUTPUT, paused ? 1 : 0);
}
Result<void> Event::write_into(const Event& other) {
  return control(PERF_EVENT_IOC_SET_OUTPUT, static_cast<std::uint64_t>(other.fd()));
}
Result<void> Event::set_filter(const std::string& filter) {
  return control(PERF_EVENT_IOC_SET_FILTER, reinterpret_cast<std::uint64_t>(filter.c_str()),
                 Step::kFilter);
}
Result<void> Event::refresh(std::uint32_t hits) { return control(PERF_EVENT_IOC_REFRESH, hits); }
Result<void> Event::change(const perf_event_attr& attr) {
  return control(PERF_EVENT_IOC_MODIFY_ATTRIBUTES, reinterpret_cast<std::uint64_t>(&attr));
}

Result<std::uint64_t> Event::count() const {
  std::uint64_t count = 0;
  int error = kernel_->read_count(fd_.get(), count);
  if (error < 0) return fail(refused(Step::kControl, -error));
  return count;
}

Result<StillRing> read_still(const Event& event) {
  constexpr int kMostTries = 1000;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::uint64_t head = event.data_head();
    auto records = read_backward_ring(event.ring(), head);
    // What is written meanwhile goes over the oldest, of which a half-written record may be left.
    if (event.data_head() != head) continue;
    if (!records) return fail(std::move(records.error()));
    return StillRing{std::move(*records), head};
  }
  return fail(ErrorCode::kSystem, "cannot read what the kernel tells beside the trace",
              "they are overwritten faster than they can be read");
}

}  // namespace tailtrace::perf
