#include "plugin/recorder/debug_registers.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include <cassert>
#include <cerrno>
#include <cstddef>

namespace tailtrace {
namespace {

constexpr std::size_t kStatus = 6, kControl = 7;

std::size_t place_of(std::size_t number) {
  return offsetof(user, u_debugreg) + number * sizeof(unsigned long);
}

bool write_register(pid_t tid, std::size_t number, std::uint64_t value) {
  return ::ptrace(PTRACE_POKEUSER, tid, place_of(number), value) == 0;
}

// The bits of the control register: enabled for this thread; what traps; how many bytes.
std::uint64_t control_of(const DebugPlace& place, std::size_t number) {
  const std::uint64_t what = place.is_code ? 0 : place.reads ? 3 : 1;
  const unsigned size_bytes = place.is_code ? 1 : place.size_bytes;
  const std::uint64_t size = size_bytes == 8 ? 2 : size_bytes - 1;
  return 1ull << (2 * number) | (what | size << 2) << (16 + 4 * number);
}

}  // namespace

Result<void> set_debug_places(pid_t tid, std::span<const DebugPlace> places) {
  assert(places.size() <= kDebugRegisters);
  bool ok = write_register(tid, kControl, 0) && write_register(tid, kStatus, 0);
  std::uint64_t control = 0;
  for (std::size_t i = 0; ok && i < places.size(); ++i) {
    ok = write_register(tid, i, places[i].address.value);
    control |= control_of(places[i], i);
  }
  if (ok && write_register(tid, kControl, control)) return {};
  Error error = system_error(fmt::format("cannot set debug registers of thread {}", tid));
  (void)write_register(tid, kControl, 0);
  return fail(std::move(error));
}

std::optional<std::size_t> take_debug_hit(pid_t tid) {
  errno = 0;
  const long status = ::ptrace(PTRACE_PEEKUSER, tid, place_of(kStatus), nullptr);
  if (errno != 0) return std::nullopt;
  (void)write_register(tid, kStatus, 0);
  for (std::size_t i = 0; i < kDebugRegisters; ++i)
    if ((status >> i & 1) != 0) return i;
  return std::nullopt;
}

}  // namespace tailtrace
