#include "tests/support/fake_kernel.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "decoder/perf/abi.h"

namespace tailtrace {
namespace {

constexpr off_t kFileSize_bytes = off_t{1} << 32;

void write_at(int fd, ByteSpan bytes, std::uint64_t offset) {
  ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  assert(written == static_cast<ssize_t>(bytes.size()));
}

std::uint64_t page_value(int fd, std::size_t offset) {
  std::uint64_t value = 0;
  ssize_t size = ::pread(fd, &value, sizeof value, static_cast<off_t>(offset));
  assert(size == sizeof value);
  return value;
}

}  // namespace

FakeKernel::FakeKernel() {
  put_file("/proc/cpuinfo", "processor : 0\nvendor_id : GenuineIntel\nmodel name : a fake\n");
  put_file("/proc/sys/kernel/perf_event_paranoid", "2\n");
  put_file("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
  put_file("/proc/sys/kernel/osrelease", "6.1.0\n");
  put_file("/proc/self/status", "VmPin:\t      24 kB\nCapEff:\t0000000000000000\nSeccomp:\t0\n");
}

void FakeKernel::put_file(const std::string& path, const std::string& text) {
  std::filesystem::path file = root() + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

void FakeKernel::put_pmu(const std::string& name, int type) {
  put_file("/sys/bus/event_source/devices/" + name + "/type", std::to_string(type) + "\n");
}

void FakeKernel::set_page(int fd, std::size_t offset, std::uint64_t value) {
  write_at(fd, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value}, offset);
}

void FakeKernel::put_aux(int fd, ByteSpan area, std::uint64_t head) {
  write_at(fd, area, page_value(fd, perf::kPageAuxOffset));
  set_page(fd, perf::kPageAuxHead, head);
}

void FakeKernel::put_ring(int fd, ByteSpan ring, std::uint64_t head) {
  write_at(fd, ring, static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  set_page(fd, perf::kPageDataHead, head);
}

int FakeKernel::open(const perf_event_attr& attr, perf::Target target, int group) {
  int answer = on_open ? on_open(attr, target) : 0;
  int fd = answer;
  if (answer == 0) {
    fd = ::memfd_create("event", MFD_CLOEXEC);
    assert(fd >= 0);
    int failed = ::ftruncate(fd, kFileSize_bytes);
    assert(failed == 0);
  }
  opened_.push_back({attr, target, group, fd});
  return fd;
}

int FakeKernel::map(int fd, std::uint64_t offset, std::size_t size, int protection, void*& map) {
  if (int answer = on_map ? on_map(offset, size, protection) : 0; answer != 0) return answer;
  void* address = ::mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (address == MAP_FAILED) return -errno;
  map = address;
  return 0;
}

int FakeKernel::control(int fd, unsigned long request, std::uint64_t argument) {
  controlled_.push_back({fd, request, argument});
  return on_control ? on_control(fd, request) : 0;
}

int FakeKernel::read_count(int, std::uint64_t& count) {
  count = 0;
  return 0;
}

}  // namespace tailtrace
