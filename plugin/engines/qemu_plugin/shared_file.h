// Files that a recorder shares with its readers: mapped once, whole, and never touched through a
// descriptor again, for the program may close all descriptors at any time.
//
// All is mapped far away from where the kernel puts things by itself: qemu's generated code and
// this plugin have to stay close together, or each call between them costs a third more.
//
// Threading: functions without state.
#pragma once

#include <cstddef>
#include <string>

namespace tailtrace {

// Makes a file of `size_bytes` without contents, mode 0600, that must not exist yet, and maps it
// shared: at `at` if given, which replaces what is mapped there. Its space is not taken yet: see
// take_space(). Null and errno on failure: EFBIG when the user's limit of file sizes forbids it.
void* map_new_file(const std::string& path, std::size_t size_bytes, void* at = nullptr);

// Takes the space of a stretch of a mapped file, so that a full file system is an error now and
// not a signal at the first write. False and errno on failure: ENOSPC when there is none. REQUIRES:
// nothing was written there before; page boundaries.
bool take_space(void* begin, std::size_t size_bytes);

// Takes addresses that nothing is mapped to yet. Null on failure.
void* reserve_addresses(std::size_t size_bytes);

// What we may take of the addresses of this process for one purpose: `wanted_bytes`, or 1/`part` of
// what the user's limit leaves to all (RLIMIT_AS); whole pages.
std::size_t share_of_addresses(std::size_t wanted_bytes, std::size_t part);

// Maps private memory that costs nothing until it is used. Null on failure.
void* map_private(std::size_t size_bytes, void* at = nullptr);

// Writes a small file, mode 0600, that must not exist yet.
bool write_new_file(const std::string& path, const std::string& text);

// A mapped file whose space is taken piece by piece as it grows.
class GrowingFile {
 public:
  // See map_new_file. `first_bytes` can be used at once.
  bool create(const std::string& path, std::size_t size_bytes, std::size_t first_bytes);

  // True when the first `size_bytes` can be written to.
  bool grow_to(std::size_t size_bytes);

  unsigned char* data() const { return data_; }
  std::size_t size_bytes() const { return size_; }

  // A new file takes this one's place, at the same address and with the same first bytes; who
  // shares the old file is no longer disturbed. False: the mapping is private memory now, with
  // the same contents, that nobody else sees.
  bool move_to(const std::string& path, std::size_t used_bytes);

 private:
  unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t taken_ = 0;
};

// Copies the first `used_bytes` of the mapping at `address` to a new file and maps that over it,
// with the space of `taken_bytes` taken. False: to private memory instead.
bool remap_as_copy(void* address, std::size_t size_bytes, std::size_t used_bytes,
                   std::size_t taken_bytes, const std::string& path);

// Gives back the space of the end of a mapped file; it reads as zeros. REQUIRES: nobody writes
// there any more.
void give_space_back(void* begin, std::size_t size_bytes);

}  // namespace tailtrace
