#include "plugin/engines/perf/kernel.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tailtrace::perf {
namespace {

constexpr std::size_t kAuxActionOffset = offsetof(perf_event_attr, aux_sample_size) + 4;

class RealKernel final : public Kernel {
 public:
  int open(const perf_event_attr& attr, Target target, int group) override {
    perf_event_attr copy = attr;  // the kernel writes its own size into one that is too large
    long fd =
        ::syscall(SYS_perf_event_open, &copy, target.tid, target.cpu, group, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : static_cast<int>(fd);
  }
  int map(int fd, std::uint64_t offset, std::size_t size, int protection, void*& map) override {
    void* address = ::mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (address == MAP_FAILED) return -errno;
    map = address;
    return 0;
  }
  int control(int fd, unsigned long request, std::uint64_t argument) override {
    int result = ::ioctl(fd, request, argument);
    return result < 0 ? -errno : result;
  }
  int read_count(int fd, std::uint64_t& count) override {
    ssize_t size = ::read(fd, &count, sizeof count);
    if (size < 0) return -errno;
    return size == sizeof count ? 0 : -ENODATA;
  }
};

}  // namespace

void set_aux_action(perf_event_attr& attr, AuxAction action) {
  std::memcpy(reinterpret_cast<char*>(&attr) + kAuxActionOffset, &action, sizeof action);
}

AuxAction aux_action(const perf_event_attr& attr) {
  AuxAction action;
  std::memcpy(&action, reinterpret_cast<const char*>(&attr) + kAuxActionOffset, sizeof action);
  return action;
}

Kernel& real_kernel() {
  static RealKernel kernel;
  return kernel;
}

}  // namespace tailtrace::perf
