#include "plugin/engines/qemu_plugin/guest_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "decoder/base/types.h"
#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {

bool read_guest(std::uint64_t address, void* to, std::size_t size_bytes) {
  // The kernel reports a bad address; a signal of ours would be taken for the program's.
  iovec local{to, size_bytes};
  iovec remote{reinterpret_cast<void*>(address + g_recorder.guest_base), size_bytes};
  ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  if (n >= 0 || (errno != EPERM && errno != ENOSYS)) return n == static_cast<ssize_t>(size_bytes);
  // A container that forbids this call: then the program has to be trusted.
  std::memcpy(to, remote.iov_base, size_bytes);
  return true;
}

std::optional<std::string> read_guest_string(std::uint64_t address, std::size_t limit) {
  std::string text;
  while (text.size() <= limit) {
    char chunk[256];
    std::uint64_t left = kPage_bytes - address % kPage_bytes;
    std::size_t n = std::min<std::uint64_t>(sizeof chunk, left);
    if (!read_guest(address, chunk, n)) return std::nullopt;
    char* end = std::find(chunk, chunk + n, '\0');
    text.append(chunk, end);
    if (end != chunk + n) return text;
    address += n;
  }
  return std::nullopt;
}

}  // namespace tailtrace
