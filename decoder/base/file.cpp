#include "decoder/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "decoder/base/types.h"

namespace tailtrace {

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

namespace {

constexpr std::size_t kLeastHole_bytes = 2u << 20;
constexpr int kMaxHoles = 4096;  // each is a mapping of its own, of which the system allows 65530

// Puts zeros in the place of a hole's whole pages. The system has one large page of them for all.
void cover_hole(std::uint8_t* data, std::size_t begin, std::size_t end) {
  begin = (begin + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
  end = end / kPage_bytes * kPage_bytes;
  if (end < begin + kLeastHole_bytes) return;
  void* zeros = ::mmap(data + begin, end - begin, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (zeros != MAP_FAILED) ::madvise(zeros, end - begin, MADV_HUGEPAGE);
}

void cover_holes(int fd, std::uint8_t* data, std::size_t size) {
  off_t end = 0;
  for (int i = 0; i < kMaxHoles && end < static_cast<off_t>(size); ++i) {
    // A file system that knows of no holes has none before the end.
    off_t begin = ::lseek(fd, end, SEEK_HOLE);
    if (begin < 0 || begin >= static_cast<off_t>(size)) return;
    end = ::lseek(fd, begin, SEEK_DATA);
    if (end < 0 && errno != ENXIO) return;
    if (end < 0) end = static_cast<off_t>(size);  // no data behind it
    cover_hole(data, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  }
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) { return map(path, false); }

Result<MappedFile> MappedFile::open_finished(const std::string& path) { return map(path, true); }

Result<MappedFile> MappedFile::map(const std::string& path, bool finished) {
  // Without waiting: a pipe would hold us until somebody writes to it.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail(system_error("cannot open " + path));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return fail(system_error("cannot stat " + path));
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kBadInput, "cannot read " + path, "it is not a regular file",
                "name a file, not a folder or a device");
  if (info.st_size == 0) return fail(ErrorCode::kBadInput, "cannot read " + path, "it is empty");
  auto size = static_cast<std::size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return fail(system_error("cannot map " + path));
  if (finished) cover_holes(fd.get(), static_cast<std::uint8_t*>(data), size);
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
  return read_rest(fd.get(), path, limit_bytes);
}

Result<void> write_all(int fd, ByteSpan bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error("cannot write " + name));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<Bytes> read_rest(int fd, const std::string& path, std::size_t limit_bytes) {
  Bytes bytes;
  std::uint8_t chunk[65536];
  for (;;) {
    ssize_t n = ::read(fd, chunk, sizeof chunk);
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
