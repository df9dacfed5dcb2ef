#include "decoder/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace tailtrace {

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Without waiting: a pipe would hold us until somebody writes to it.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail(system_error("cannot open " + path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return fail(system_error("cannot stat " + path));
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kBadInput, "cannot read " + path, "it is not a regular file");
  if (info.st_size == 0) return fail(ErrorCode::kBadInput, "cannot read " + path, "it is empty");
  auto size = static_cast<std::size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return fail(system_error("cannot map " + path));
  MappedFile file;
  file.data_ = static_cast<const std::uint8_t*>(data);
  file.size_ = size;
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

Result<Bytes> read_file(const std::string& path, std::size_t limit_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + path));
  Bytes bytes;
  std::uint8_t chunk[65536];
  for (;;) {
    ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error("cannot read " + path));
    if (n == 0) return bytes;
    if (bytes.size() + static_cast<std::size_t>(n) > limit_bytes)
      return fail(ErrorCode::kBadInput, "cannot read " + path,
                  "it is larger than " + std::to_string(limit_bytes) + " bytes");
    bytes.insert(bytes.end(), chunk, chunk + n);
  }
}

}  // namespace tailtrace
