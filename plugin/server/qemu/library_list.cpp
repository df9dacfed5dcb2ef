#include "plugin/server/qemu/library_list.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <climits>

#include "plugin/server/rsp/transfer.h"

namespace tailtrace {
namespace {

// Beyond them a list is taken for destroyed.
constexpr int kMaxNamespaces = 16, kMaxLibraries = 1 << 16, kMaxSegments = 1 << 10;
constexpr int kMaxEntries = 1 << 10;  // of a dynamic section

class Guest {
 public:
  explicit Guest(const ReadGuest& read) : read_(read) {}

  template <class T>
  std::optional<T> at(Address address) const {
    std::array<std::uint8_t, sizeof(T)> bytes;
    if (read_(address, bytes) != bytes.size()) return std::nullopt;
    return load<T>(bytes);
  }

  // Up to its NUL, PATH_MAX or where memory ends. Never beyond the page that it ends in.
  std::string text_at(Address address) const {
    std::string text;
    while (text.size() < PATH_MAX) {
      std::array<std::uint8_t, 64> bytes;
      const std::span piece(bytes.data(), bytes.size() - address.value % bytes.size());
      const std::string_view part = as_text(piece.first(read_(address, piece)));
      text += part.substr(0, part.find('\0'));
      if (part.size() != piece.size() || part.find('\0') != part.npos) break;
      address = address + piece.size();
    }
    return text;
  }

 private:
  const ReadGuest& read_;
};

std::uint64_t auxiliary(ByteSpan auxv, std::uint64_t type) {
  for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= auxv.size(); at += sizeof(Elf64_auxv_t))
    if (auto entry = load<Elf64_auxv_t>(auxv, at); entry.a_type == type) return entry.a_un.a_val;
  return 0;
}

Address dynamic_section(ByteSpan auxv, const Guest& guest) {
  const Address table{auxiliary(auxv, AT_PHDR)};
  const int count =
      static_cast<int>(std::min<std::uint64_t>(auxiliary(auxv, AT_PHNUM), kMaxSegments));
  std::uint64_t moved_by = 0;
  Address dynamic;
  for (int i = 0; i < count; ++i) {
    auto segment = guest.at<Elf64_Phdr>(table + i * sizeof(Elf64_Phdr));
    if (!segment) return {};
    if (segment->p_type == PT_PHDR) moved_by = table.value - segment->p_vaddr;
    if (segment->p_type == PT_DYNAMIC) dynamic = {segment->p_vaddr};
  }
  return dynamic.is_null() ? dynamic : dynamic + moved_by;
}

// The dynamic linker tells debuggers where it is.
Address debug_structure(Address dynamic, const Guest& guest) {
  for (int i = 0; i < kMaxEntries && !dynamic.is_null(); ++i) {
    auto entry = guest.at<Elf64_Dyn>(dynamic + i * sizeof(Elf64_Dyn));
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_DEBUG) return {entry->d_un.d_ptr};
  }
  return {};
}

Address address_of(const void* pointer) { return {reinterpret_cast<std::uint64_t>(pointer)}; }

// Of one namespace, all but the program itself, which has no name.
void add_libraries(Address debug, Address first, const Guest& guest,
                   std::vector<LoadedLibrary>& all) {
  Address at = first;
  for (int i = 0; i < kMaxLibraries && !at.is_null(); ++i) {
    auto library = guest.at<link_map>(at);
    if (!library) break;
    std::string name = guest.text_at(address_of(library->l_name));
    if (!name.empty())
      all.push_back({std::move(name), at, library->l_addr, address_of(library->l_ld), debug});
    at = address_of(library->l_next);
  }
}

// glibc's `struct r_debug_extended`: those of version 2 tell of the next namespace.
Address next_namespace(Address debug, const r_debug& known, const Guest& guest) {
  if (known.r_version < 2) return {};
  return {guest.at<std::uint64_t>(debug + sizeof(r_debug)).value_or(0)};
}

}  // namespace

std::optional<LibraryList> loaded_libraries(ByteSpan auxv, const ReadGuest& read) {
  const Guest guest(read);
  Address debug = debug_structure(dynamic_section(auxv, guest), guest);
  auto known = debug.is_null() ? std::nullopt : guest.at<r_debug>(debug);
  if (!known || known->r_map == nullptr) return std::nullopt;
  LibraryList list{address_of(known->r_map), {}};
  for (int i = 0; i < kMaxNamespaces && known; ++i) {
    add_libraries(debug, address_of(known->r_map), guest, list.libraries);
    debug = next_namespace(debug, *known, guest);
    known = debug.is_null() ? std::nullopt : guest.at<r_debug>(debug);
  }
  return list;
}

std::string library_document(const LibraryList& list) {
  std::string text =
      fmt::format(R"(<library-list-svr4 version="1.0" main-lm="{:#x}">)", list.program.value);
  for (const LoadedLibrary& library : list.libraries)
    text +=
        fmt::format(R"(<library name="{}" lm="{:#x}" l_addr="{:#x}" l_ld="{:#x}" lmid="{:#x}"/>)",
                    rsp::xml_escaped(library.name), library.link_map.value, library.moved_by,
                    library.dynamic_section.value, library.name_space.value);
  return text + "</library-list-svr4>";
}

}  // namespace tailtrace
