#include "plugin/engines/qemu_plugin/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "decoder/base/types.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tailtrace {
namespace {

constexpr std::size_t kStep_bytes = 256 << 10;

std::size_t up_to_page(std::size_t n) { return (n + kPage_bytes - 1) & ~(kPage_bytes - 1); }

// Kernels before 5.14: let the kernel write zeros where zeros are; it reports what we would die of.
bool write_zeros(void* begin, std::size_t size_bytes) {
  int fd = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  auto* at = static_cast<char*>(begin);
  std::size_t left = size_bytes;
  while (left != 0) {
    ssize_t n = ::read(fd, at, left);
    if (n <= 0) break;
    at += n;
    left -= static_cast<std::size_t>(n);
  }
  ::close(fd);
  return left == 0;
}

// Beyond the limit the kernel would send a signal (SIGXFSZ) as well.
bool may_have_size(std::size_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || size_bytes <= limit.rlim_cur) return true;
  errno = EFBIG;
  return false;
}

// Addresses that nobody else is likely to use; the kernel takes them as a wish.
std::uint64_t g_next_address = 0x2800'0000'0000;

void* map_far(std::size_t size_bytes, int protection, int flags, int fd) {
  void* wish = reinterpret_cast<void*>(g_next_address);
  g_next_address += up_to_page(size_bytes) + kPage_bytes;
  return ::mmap(wish, size_bytes, protection, flags, fd, 0);
}

}  // namespace

void* map_new_file(const std::string& path, std::size_t size_bytes, void* at) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nullptr;
  void* map = MAP_FAILED;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  if (may_have_size(size_bytes) && ::ftruncate(fd, static_cast<off_t>(size_bytes)) == 0)
    map = at == nullptr ? map_far(size_bytes, kAccess, MAP_SHARED, fd)
                        : ::mmap(at, size_bytes, kAccess, MAP_SHARED | MAP_FIXED, fd, 0);
  int error = errno;
  ::close(fd);
  if (map != MAP_FAILED) return map;
  ::unlink(path.c_str());
  errno = error;
  return nullptr;
}

bool take_space(void* begin, std::size_t size_bytes) {
  if (size_bytes == 0) return true;
  if (::madvise(begin, size_bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno == EINVAL && write_zeros(begin, size_bytes)) return true;
  if (errno == EFAULT) errno = ENOSPC;  // how the kernel says it here
  return false;
}

std::size_t share_of_addresses(std::size_t wanted_bytes, std::size_t part) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted_bytes;
  return std::min<std::size_t>(wanted_bytes, limit.rlim_cur / part) & ~(kPage_bytes - 1);
}

void* reserve_addresses(std::size_t size_bytes) {
  void* map = map_far(size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  return map == MAP_FAILED ? nullptr : map;
}

void* map_private(std::size_t size_bytes, void* at) {
  void* map =
      ::mmap(at, size_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != nullptr ? MAP_FIXED : 0), -1, 0);
  return map == MAP_FAILED ? nullptr : map;
}

bool write_new_file(const std::string& path, const std::string& text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  ssize_t n = ::write(fd, text.data(), text.size());
  ::close(fd);
  return n == static_cast<ssize_t>(text.size());
}

bool GrowingFile::create(const std::string& path, std::size_t size_bytes, std::size_t first_bytes) {
  size_ = up_to_page(size_bytes);
  taken_ = 0;
  data_ = static_cast<unsigned char*>(map_new_file(path, size_));
  return data_ != nullptr && grow_to(first_bytes);
}

bool GrowingFile::grow_to(std::size_t size_bytes) {
  if (size_bytes <= taken_) return true;
  if (size_bytes > size_) return false;
  std::size_t step = std::max(up_to_page(size_bytes - taken_), kStep_bytes);
  step = std::min(step, size_ - taken_);
  if (!take_space(data_ + taken_, step)) return false;
  taken_ += step;
  return true;
}

bool GrowingFile::move_to(const std::string& path, std::size_t used_bytes) {
  taken_ = up_to_page(used_bytes);
  return remap_as_copy(data_, size_, used_bytes, taken_, path);
}

bool remap_as_copy(void* address, std::size_t size_bytes, std::size_t used_bytes,
                   std::size_t taken_bytes, const std::string& path) {
  void* copy = map_new_file(path, size_bytes);
  bool shared = copy != nullptr && take_space(copy, up_to_page(taken_bytes));
  if (!shared) {
    if (copy != nullptr) {
      ::munmap(copy, size_bytes);
      ::unlink(path.c_str());
    }
    copy = map_private(size_bytes);
    if (copy == nullptr) return false;
  }
  std::memcpy(copy, address, used_bytes);
  void* moved = ::mremap(copy, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address);
  return shared && moved == address;
}

void give_space_back(void* begin, std::size_t size_bytes) {
  if (size_bytes != 0) ::madvise(begin, size_bytes, MADV_REMOVE);
}

}  // namespace tailtrace
