#include "decoder/symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "decoder/base/types.h"
#include "decoder/symbols/dynamic_symbols.h"
#include "decoder/symbols/mini_debug_info.h"
#include "decoder/symbols/plt.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxName_bytes = 1 << 14;
constexpr std::size_t kMaxSegments = 1 << 7;

tl::unexpected<Error> bad_elf(const std::string& path, std::string why) {
  return fail(ErrorCode::kBadInput, "cannot read the symbols of " + path, std::move(why));
}

void know_version() {
  static std::once_flag once;
  std::call_once(once, [] { elf_version(EV_CURRENT); });
}

// A name of the string table that ends inside of it.
std::string name_at(Elf* elf, std::size_t strings, std::size_t offset) {
  const char* name = elf_strptr(elf, strings, offset);
  return name == nullptr ? std::string() : std::string(name, strnlen(name, kMaxName_bytes));
}

enum class Names : std::uint8_t { kCode, kData };

// Where a section of code, or of data, ends; 0 when it holds none.
std::uint64_t end_of_section(Elf* elf, std::size_t index, Names what) {
  GElf_Shdr header;
  Elf_Scn* section = elf_getscn(elf, index);
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return 0;
  const bool is_code = (header.sh_flags & SHF_EXECINSTR) != 0;
  const bool is_data = !is_code && (header.sh_flags & SHF_ALLOC) != 0;
  if (!(what == Names::kCode ? is_code : is_data)) return 0;
  return header.sh_addr + std::min(header.sh_size, ~std::uint64_t{0} - header.sh_addr);
}

bool may_name(const GElf_Sym& symbol, Names what) {
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) return false;
  switch (GELF_ST_TYPE(symbol.st_info)) {
    case STT_NOTYPE:
      return true;
    case STT_FUNC:
    case STT_GNU_IFUNC:
      return what == Names::kCode;
    case STT_OBJECT:
      return what == Names::kData;
    default:
      return false;
  }
}

// "memcpy@@GLIBC_2.14" is the default memcpy.
void cut_default_version(std::string& name) {
  std::size_t at = name.find("@@");
  if (at != std::string::npos) name.resize(at);
}

// How long all names of a table of strings may be together: they share their ends, if anything.
std::uint64_t names_limit_bytes(Elf* elf, std::size_t strings) {
  constexpr std::uint64_t kMostShared = 64;
  GElf_Shdr header;
  Elf_Scn* section = elf_getscn(elf, strings);
  if (section == nullptr || gelf_getshdr(section, &header) == nullptr) return 0;
  return std::min<std::uint64_t>(header.sh_size, 1ull << 40) * kMostShared;
}

// Of the table for the dynamic linker; null: it has none.
Elf_Data* versions_of(Elf* elf, const GElf_Shdr& table) {
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (table.sh_type == SHT_DYNSYM && gelf_getshdr(s, &header) != nullptr &&
        header.sh_type == SHT_GNU_versym)
      return elf_getdata(s, nullptr);
  }
  return nullptr;
}

bool is_old_version(Elf_Data* versions, std::size_t number) {
  constexpr GElf_Versym kHidden = 0x8000;
  GElf_Versym version;
  return versions != nullptr &&
         gelf_getversym(versions, static_cast<int>(number), &version) != nullptr &&
         (version & kHidden) != 0;
}

void read_table(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, Names what,
                std::vector<ElfSymbol>& symbols) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  std::size_t count = std::min<std::size_t>(data->d_size / header.sh_entsize, 1u << 30);
  Elf_Data* versions = versions_of(elf, header);
  std::uint64_t left_bytes = names_limit_bytes(elf, header.sh_link);
  std::vector<std::optional<std::uint64_t>> ends;  // by section; nothing: not known yet
  for (std::size_t i = 0; i < count && symbols.size() < ElfFile::kMaxSymbols; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr || !may_name(symbol, what))
      continue;
    if (symbol.st_shndx >= ends.size()) ends.resize(symbol.st_shndx + 1u);
    std::optional<std::uint64_t>& end = ends[symbol.st_shndx];
    if (!end) end = end_of_section(elf, symbol.st_shndx, what);
    if (*end == 0) continue;
    std::string name = name_at(elf, header.sh_link, symbol.st_name);
    if (name.empty() || name.starts_with(".L") || name.front() == '$') continue;
    if (name.size() > left_bytes) return;
    left_bytes -= name.size();
    cut_default_version(name);
    symbols.push_back({symbol.st_value, symbol.st_size, std::move(name), *end,
                       GELF_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC, is_old_version(versions, i)});
  }
}

std::vector<ElfSymbol> read_tables(Elf* elf, Names what) {
  std::vector<ElfSymbol> symbols;
  std::vector<Elf_Scn*> dynamic;
  bool has_full = false;
  for (Elf_Scn* s = elf_nextscn(elf, nullptr); s != nullptr; s = elf_nextscn(elf, s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr) continue;
    if (header.sh_type == SHT_DYNSYM) dynamic.push_back(s);
    if (header.sh_type != SHT_SYMTAB) continue;
    read_table(elf, s, header, what, symbols);
    has_full = true;
  }
  // The full table holds what the dynamic one does.
  for (Elf_Scn* s : dynamic) {
    GElf_Shdr header;
    if (!has_full && gelf_getshdr(s, &header) != nullptr) read_table(elf, s, header, what, symbols);
  }
  return symbols;
}

void sort_symbols(std::vector<ElfSymbol>& symbols) {
  std::ranges::sort(symbols, [](const ElfSymbol& a, const ElfSymbol& b) {
    return a.value != b.value ? a.value < b.value : a.name < b.name;
  });
}

}  // namespace

Result<ElfFile> ElfFile::open(const std::string& path) {
  know_version();
  ElfFile file(path);
  file.fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.fd_) return fail(system_error("cannot open " + path));
  file.elf_.reset(elf_begin(file.fd_.get(), ELF_C_READ_MMAP, nullptr));
  if (auto begun = file.begin(); !begun) return fail(std::move(begun.error()));
  return file;
}

Result<ElfFile> ElfFile::of_image(const std::string& name, Bytes image) {
  know_version();
  ElfFile file(name);
  if (image.size() < sizeof(Elf64_Ehdr)) return bad_elf(name, "it is not an ELF file");
  auto header = load<Elf64_Ehdr>(image);
  header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
  std::memcpy(image.data(), &header, sizeof header);
  file.image_ = std::move(image);
  file.elf_.reset(elf_memory(reinterpret_cast<char*>(file.image_.data()), file.image_.size()));
  if (auto begun = file.begin(); !begun) return fail(std::move(begun.error()));
  return file;
}

Result<void> ElfFile::begin() {
  GElf_Ehdr header;
  if (elf_ == nullptr || elf_kind(elf_.get()) != ELF_K_ELF ||
      gelf_getehdr(elf_.get(), &header) == nullptr)
    return bad_elf(path_, "it is not an ELF file");
  if (header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return bad_elf(path_, "it is not for x86-64");
  read_segments();
  return {};
}

ElfFile::~ElfFile() = default;

void ElfFile::read_segments() {
  std::size_t count = 0;
  if (elf_getphdrnum(elf_.get(), &count) != 0) return;
  for (std::size_t i = 0; i < std::min(count, kMaxSegments); ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type != PT_LOAD) continue;
    segments_.push_back(
        {header.p_vaddr, header.p_offset, header.p_filesz, (header.p_flags & PF_X) != 0});
  }
}

ByteSpan ElfFile::code_at(std::uint64_t address) const {
  std::size_t size_bytes = 0;
  const char* whole = elf_rawfile(elf_.get(), &size_bytes);
  if (whole == nullptr) return {};
  const ByteSpan bytes(reinterpret_cast<const std::uint8_t*>(whole), size_bytes);
  for (const ElfSegment& segment : segments_) {
    if (!segment.executable || address < segment.address) continue;
    const std::uint64_t within = address - segment.address;
    if (within >= segment.size_bytes || segment.file_offset_bytes >= size_bytes) continue;
    const ByteSpan rest = bytes.subspan(segment.file_offset_bytes);
    const std::uint64_t size = std::min<std::uint64_t>(segment.size_bytes, rest.size());
    return within < size ? rest.subspan(within, size - within) : ByteSpan();
  }
  return {};
}

std::vector<ElfSymbol> ElfFile::symbols() const {
  std::vector<ElfSymbol> symbols =
      image_.empty() ? read_tables(elf_.get(), Names::kCode) : dynamic_symbols(image_);
  if (image_.empty()) add_plt_symbols(elf_.get(), symbols);
  sort_symbols(symbols);
  return symbols;
}

std::vector<ElfSymbol> ElfFile::packed_symbols() const {
  Bytes unpacked = mini_debug_info(elf_.get());
  const std::unique_ptr<Elf, EndElf> elf(
      elf_memory(reinterpret_cast<char*>(unpacked.data()), unpacked.size()));
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF) return {};
  std::vector<ElfSymbol> symbols = read_tables(elf.get(), Names::kCode);
  sort_symbols(symbols);
  return symbols;
}

std::vector<ElfSymbol> ElfFile::variables() const {
  std::vector<ElfSymbol> symbols = read_tables(elf_.get(), Names::kData);
  sort_symbols(symbols);
  return symbols;
}

std::optional<std::uint64_t> ElfFile::dynamic_symbol(std::string_view name) const {
  for (Elf_Scn* s = elf_nextscn(elf_.get(), nullptr); s != nullptr;
       s = elf_nextscn(elf_.get(), s)) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(s, nullptr);
    GElf_Sym symbol;
    for (int i = 0; data != nullptr && gelf_getsym(data, i, &symbol) != nullptr; ++i)
      if (symbol.st_shndx != SHN_UNDEF &&
          name_at(elf_.get(), header.sh_link, symbol.st_name) == name)
        return symbol.st_value;
  }
  return std::nullopt;
}

std::string ElfFile::build_id() const {
  const void* id = nullptr;
  ssize_t size = dwelf_elf_gnu_build_id(elf_.get(), &id);
  constexpr ssize_t kMaxId_bytes = 64;
  if (size <= 0 || size > kMaxId_bytes) return {};
  return to_hex({static_cast<const std::uint8_t*>(id), static_cast<std::size_t>(size)});
}

std::string ElfFile::debug_link() const {
  GElf_Word checksum = 0;
  const char* name = dwelf_elf_gnu_debuglink(elf_.get(), &checksum);
  // A name, not a path: nobody may lead us elsewhere.
  if (name == nullptr || std::strchr(name, '/') != nullptr) return {};
  return {name, strnlen(name, kMaxName_bytes)};
}

}  // namespace tailtrace
