#include "plugin/engines/qemu_plugin/imports.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tailtrace {
namespace {

// The program's dynamic section.
struct Tables {
  ElfW(Addr) base = 0;
  const Elf64_Sym* symbols = nullptr;
  const char* names = nullptr;
  struct Relocations {
    const Elf64_Rela* first = nullptr;
    std::size_t size_bytes = 0;
  } of_calls, of_data;
};

// The loader has already turned the section's addresses into absolute ones.
Tables read_tables(ElfW(Addr) base, const ElfW(Dyn) * entry) {
  Tables t;
  t.base = base;
  for (; entry->d_tag != DT_NULL; ++entry) {
    ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) t.symbols = reinterpret_cast<const Elf64_Sym*>(value);
    if (entry->d_tag == DT_STRTAB) t.names = reinterpret_cast<const char*>(value);
    if (entry->d_tag == DT_JMPREL) t.of_calls.first = reinterpret_cast<const Elf64_Rela*>(value);
    if (entry->d_tag == DT_PLTRELSZ) t.of_calls.size_bytes = value;
    if (entry->d_tag == DT_RELA) t.of_data.first = reinterpret_cast<const Elf64_Rela*>(value);
    if (entry->d_tag == DT_RELASZ) t.of_data.size_bytes = value;
  }
  return t;
}

// The program is the first of all loaded objects.
int take_first(dl_phdr_info* info, std::size_t, void* to) {
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      *static_cast<Tables*>(to) = read_tables(
          info->dlpi_addr,
          reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
  return 1;
}

// The table is read-only once the loader has filled it in.
bool overwrite(void** slot, void* value) {
  std::uintptr_t page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_bytes - 1));
  if (::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  *slot = value;
  ::mprotect(page, page_bytes, PROT_READ);
  return true;
}

bool replace_in(const Tables& t, const Tables::Relocations& relocations, std::string_view name,
                void* instead) {
  bool any = false;
  for (std::size_t i = 0; i < relocations.size_bytes / sizeof(Elf64_Rela); ++i) {
    const Elf64_Rela& r = relocations.first[i];
    auto type = ELF64_R_TYPE(r.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    if (name != t.names + t.symbols[ELF64_R_SYM(r.r_info)].st_name) continue;
    any |= overwrite(reinterpret_cast<void**>(t.base + r.r_offset), instead);
  }
  return any;
}

}  // namespace

bool replace_import(std::string_view name, void* instead) {
  Tables t;
  ::dl_iterate_phdr(take_first, &t);
  if (t.symbols == nullptr || t.names == nullptr) return false;
  bool in_calls = replace_in(t, t.of_calls, name, instead);
  bool in_data = replace_in(t, t.of_data, name, instead);
  return in_calls || in_data;
}

}  // namespace tailtrace
