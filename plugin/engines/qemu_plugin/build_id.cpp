#include "plugin/engines/qemu_plugin/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace tailtrace {
namespace {

constexpr std::uint64_t kMaxNotes_bytes = 1 << 16;
constexpr unsigned kMaxSegments = 1 << 7;

template <class T>
bool read_at(int fd, std::uint64_t offset, T& value) {
  return ::pread(fd, &value, sizeof value, static_cast<off_t>(offset)) == sizeof value;
}

std::string hex_at(int fd, std::uint64_t offset, std::uint32_t size_bytes) {
  unsigned char id[64];
  const std::size_t size = std::min<std::size_t>(size_bytes, sizeof id);
  if (::pread(fd, id, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) return {};
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", id[i]);
    text += digits;
  }
  return text;
}

// Of the notes of one segment.
std::string id_among(int fd, const Elf64_Phdr& notes) {
  const std::uint64_t align = notes.p_align == 8 ? 8 : 4;
  auto up = [align](std::uint64_t n) { return (n + align - 1) & ~(align - 1); };
  std::uint64_t at = 0;
  Elf64_Nhdr note;
  while (at + sizeof note <= notes.p_filesz && at < kMaxNotes_bytes) {
    const std::uint64_t name_at = notes.p_offset + at + sizeof note;
    char name[4] = {};
    if (!read_at(fd, notes.p_offset + at, note)) return {};
    const std::uint64_t id_at = notes.p_offset + up(at + sizeof note + note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof name &&
        read_at(fd, name_at, name) && std::memcmp(name, "GNU", sizeof name) == 0)
      return hex_at(fd, id_at, note.n_descsz);
    at = up(id_at - notes.p_offset + note.n_descsz);
  }
  return {};
}

std::string id_in(int fd) {
  Elf64_Ehdr file;
  if (!read_at(fd, 0, file) || std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 ||
      file.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  std::string id;
  Elf64_Phdr segment;
  for (unsigned i = 0; i < file.e_phnum && i < kMaxSegments && id.empty(); ++i)
    if (read_at(fd, file.e_phoff + i * sizeof segment, segment) && segment.p_type == PT_NOTE)
      id = id_among(fd, segment);
  return id;
}

}  // namespace

std::string build_id_of(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  std::string id = id_in(fd);
  ::close(fd);
  return id;
}

}  // namespace tailtrace
