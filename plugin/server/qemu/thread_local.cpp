#include "plugin/server/qemu/thread_local.h"

#include <array>

#include "decoder/symbols/elf_file.h"

namespace tailtrace {
namespace {

// What glibc exports of each member of its structures that debuggers need to know.
struct MemberDescription {
  std::uint32_t size_bits, count, offset_bytes;
};
constexpr char kModuleNumber[] = "_thread_db_link_map_l_tls_modid";

std::optional<std::uint64_t> word_at(Address address, const ReadGuest& read) {
  std::array<std::uint8_t, 8> bytes;
  if (read(address, bytes) != bytes.size()) return std::nullopt;
  return load<std::uint64_t>(bytes);
}

// Up to glibc 2.33 it is its thread library that tells.
bool may_describe(std::string_view library) {
  return library.find("/libc") != library.npos || library.find("/libpthread") != library.npos;
}

std::optional<MemberDescription> describe(const LibraryList& libraries, const char* name,
                                          const ReadGuest& read) {
  for (const LoadedLibrary& library : libraries.libraries) {
    if (!may_describe(library.name)) continue;
    auto file = ElfFile::open(library.name);
    auto value = file ? file->dynamic_symbol(name) : std::nullopt;
    std::array<std::uint8_t, sizeof(MemberDescription)> bytes;
    if (value && read({library.moved_by + *value}, bytes) == bytes.size())
      return load<MemberDescription>(bytes);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> tls_module(const LibraryList& libraries, Address link_map,
                                        const ReadGuest& read) {
  if (link_map.is_null() || link_map == libraries.program) return 1;
  auto number = describe(libraries, kModuleNumber, read);
  return number ? word_at(link_map + number->offset_bytes, read) : std::nullopt;
}

// The thread pointer leads to its own address, then to that of the vector of copies: two words for
// each module, of which the first leads there. What lies before it says how many there are.
std::optional<Address> tls_address(Address thread_pointer, std::uint64_t module,
                                   std::uint64_t offset, const ReadGuest& read) {
  constexpr std::uint64_t kEntry_bytes = 16, kNone = ~0ull;
  auto vector = word_at(thread_pointer + 8, read);
  auto count = vector ? word_at({*vector - kEntry_bytes}, read) : std::nullopt;
  if (!count || module == 0 || module > *count) return std::nullopt;
  auto copy = word_at({*vector + module * kEntry_bytes}, read);
  if (!copy || *copy == 0 || *copy == kNone) return std::nullopt;
  return Address{*copy + offset};
}

}  // namespace tailtrace
