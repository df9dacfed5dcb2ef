// Files and descriptors that close themselves.
//
// Threading: an object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"

namespace tailtrace {

// Owns a file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// A file mapped whole, read-only and shared: what another process writes into it shows.
class MappedFile {
 public:
  // Errors: the file cannot be opened, or is empty, or is not a regular file.
  static Result<MappedFile> open(const std::string& path);

  // The same for a file that nobody writes any longer: large holes of it, which read as zeros, take
  // no memory however much of them is read.
  static Result<MappedFile> open_finished(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedFile();

  ByteSpan bytes() const { return {data_, size_}; }

 private:
  static Result<MappedFile> map(const std::string& path, bool finished);

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Writes all of it where the file stands. `name` is what errors call it.
Result<void> write_all(int fd, ByteSpan bytes, const std::string& name);

// What a file still has to give. `name` is what errors call it. Errors: as read_file.
Result<Bytes> read_rest(int fd, const std::string& name, std::size_t limit_bytes);

// The whole of a file. Errors: it cannot be read, or is larger than `limit_bytes`.
Result<Bytes> read_file(const std::string& path, std::size_t limit_bytes);

}  // namespace tailtrace
