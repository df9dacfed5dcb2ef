#include "plugin/cli/watch_place.h"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "decoder/base/bytes.h"
#include "decoder/history/function_name.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

struct Words {
  std::string name;  // or
  std::optional<std::uint64_t> address;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> size_bytes;
};

struct Symbol {
  std::uint64_t value = 0, size_bytes = 0;
  bool is_data = false;
  std::string name;  // for people

  friend bool operator==(const Symbol&, const Symbol&) = default;
};

// What a file has of a name: the first that has it exactly, and those that a debugger would take.
struct Named {
  std::optional<Symbol> exactly;
  std::vector<Symbol> called;
};

std::optional<std::uint64_t> number_in(std::string_view text) {
  if (text.starts_with("0x")) return parse_hex(text.substr(2));
  std::uint64_t value = 0;
  auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

tl::unexpected<Error> unusable(const std::string& text, std::string why, std::string fix = {}) {
  return fail(ErrorCode::kUsage, "cannot watch " + text, std::move(why), std::move(fix));
}

// A C++ name may have colons and plus signs of its own: what follows the last one is a number.
Result<Words> words_of(const std::string& text) {
  Words words;
  std::string_view rest = text;
  if (std::size_t colon = rest.rfind(':'); colon != std::string_view::npos)
    if (auto size = number_in(rest.substr(colon + 1)); size && rest[colon - (colon != 0)] != ':') {
      words.size_bytes = size;
      rest = rest.substr(0, colon);
    }
  if (rest.starts_with('*')) {
    words.address = number_in(rest.substr(1));
    if (!words.address) return unusable(text, "there is no address behind the *", "*0x401136");
    return words;
  }
  if (std::size_t plus = rest.rfind('+'); plus != std::string_view::npos)
    if (auto offset = number_in(rest.substr(plus + 1))) {
      words.offset = *offset;
      rest = rest.substr(0, plus);
    }
  words.name = rest;
  if (words.name.empty()) return unusable(text, "there is no name", "NAME, NAME:SIZE, *ADDRESS");
  return words;
}

// Parts that compilers put apart ("_Z3addi.cold") go by their whole name only.
void note_if_named(const std::string& symbol, const std::string& name, Symbol found, Named& named) {
  Function function;
  function.symbol_name = symbol;
  if (symbol.find('.') == symbol.npos) function.name = demangle(symbol);
  found.name = function.name.empty() ? symbol : function.name;
  if (has_name(function, name)) {
    if (!named.exactly) named.exactly = std::move(found);
  } else if (is_called(function, name) &&
             std::ranges::find(named.called, found) == named.called.end()) {
    named.called.push_back(std::move(found));
  }
}

void find_in(Elf* elf, Elf_Scn* section, const GElf_Shdr& header, const std::string& name,
             Named& named) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || header.sh_entsize == 0) return;
  const auto count = static_cast<int>(
      std::min<std::uint64_t>(header.sh_size / header.sh_entsize, ElfFile::kMaxSymbols));
  for (int i = 0; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, i, &symbol) == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
    const int type = GELF_ST_TYPE(symbol.st_info);
    if (type != STT_OBJECT && type != STT_FUNC && type != STT_NOTYPE) continue;
    const char* found = elf_strptr(elf, header.sh_link, symbol.st_name);
    if (found != nullptr)
      note_if_named(found, name, {symbol.st_value, symbol.st_size, type == STT_OBJECT, {}}, named);
  }
}

// Of the full symbol table, and of the one for the dynamic linker.
// Errors: the file cannot be read.
Result<Named> find_symbols(const std::string& path, const std::string& name) {
  auto file = ElfFile::open(path);
  if (!file) return fail(std::move(file.error()));
  Named named;
  for (Elf64_Word wanted : {SHT_SYMTAB, SHT_DYNSYM})
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(file->elf(), section)) != nullptr;) {
      GElf_Shdr header;
      if (gelf_getshdr(section, &header) == nullptr || header.sh_type != wanted) continue;
      find_in(file->elf(), section, header, name, named);
    }
  return named;
}

Result<Symbol> symbol_of(const std::string& text, const Mapping& program, const std::string& name) {
  auto named = find_symbols(program.file(), name);
  if (!named) return fail(std::move(named.error()));
  if (named->exactly) return std::move(*named->exactly);
  const std::vector<Symbol>& called = named->called;
  if (called.size() == 1) return called.front();
  if (called.empty())
    return unusable(text, fmt::format("{} has no symbol of that name", program.path),
                    "a variable or function of the program itself, or *ADDRESS");
  return unusable(text, fmt::format("{} symbols may be meant", called.size()),
                  fmt::format("{} or {}", called[0].name, called[1].name));
}

struct Loaded {
  Mapping mapping;
  std::uint64_t bias = 0;
};

Result<std::vector<Mapping>> mappings_now(std::int32_t pid) {
  return process_maps(pid).map([pid](const std::string& maps) { return mappings_of(pid, maps); });
}

Result<Loaded> program_of(std::int32_t pid) {
  std::error_code error;
  std::string path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  if (error) return fail(ErrorCode::kGone, "cannot look up names in the program", error.message());
  if (path.ends_with(kDeletedWord)) path.resize(path.size() - kDeletedWord.size());
  auto mappings = mappings_now(pid);
  if (!mappings) return fail(std::move(mappings.error()));
  for (const Mapping& mapping : *mappings) {
    if (mapping.path != path) continue;
    auto file = ElfFile::open(mapping.file());
    if (!file) return fail(std::move(file.error()));
    if (auto bias = load_bias(file->segments(), *mappings, mapping)) return Loaded{mapping, *bias};
  }
  return fail(ErrorCode::kGone, "cannot look up names in the program", "it is not mapped");
}

Result<perf::BreakpointSpec> look_up(const std::string& text, const Words& words,
                                     const Loaded& program, bool& is_data, std::uint64_t& size) {
  auto symbol = symbol_of(text, program.mapping, words.name);
  if (!symbol) return fail(std::move(symbol.error()));
  if (words.offset > symbol->size_bytes)
    return unusable(text, fmt::format("{} has {} bytes only", words.name, symbol->size_bytes));
  is_data = symbol->is_data;
  size = symbol->size_bytes - words.offset;
  perf::BreakpointSpec spec;
  spec.address = {symbol->value + words.offset + program.bias};
  return spec;
}

// What a user names, before anybody asks what can be done with it.
struct Place {
  perf::BreakpointSpec spec;
  bool is_data = false;
  std::optional<std::uint64_t> said_size_bytes;
  std::uint64_t size_bytes = 0;  // as said, else as the symbol table has it
};

Result<Place> place_of(const std::string& text, std::int32_t pid) {
  auto words = words_of(text);
  if (!words) return fail(std::move(words.error()));
  Place place;
  if (words->address) {
    place.spec.address = {*words->address};
  } else {
    auto program = program_of(pid);
    if (!program) return fail(std::move(program.error()));
    auto found = look_up(text, *words, *program, place.is_data, place.size_bytes);
    if (!found) return fail(std::move(found.error()));
    place.spec = std::move(*found);
  }
  place.spec.name = text;
  place.said_size_bytes = words->size_bytes;
  place.size_bytes = words->size_bytes.value_or(place.size_bytes);
  return place;
}

// How much of it from there on a debug register can watch.
std::uint64_t largest_part(std::uint64_t size_bytes, Address address) {
  std::uint64_t part_bytes = 8;
  while (part_bytes > 1 && (part_bytes > size_bytes || address.value % part_bytes != 0))
    part_bytes /= 2;
  return part_bytes;
}

}  // namespace

Result<perf::BreakpointSpec> resolve_watch(const std::string& text, std::int32_t pid, bool reads) {
  auto place = place_of(text, pid);
  if (!place) return fail(std::move(place.error()));
  perf::BreakpointSpec& spec = place->spec;
  const std::uint64_t size = place->size_bytes;
  if (!place->is_data && !place->said_size_bytes) return spec;
  const std::uint64_t part = largest_part(size, spec.address);
  const std::string name = place->said_size_bytes ? text.substr(0, text.rfind(':')) : text;
  if (part != size)
    return unusable(text,
                    fmt::format("it is {} bytes at {:#x}, and a debug register watches 1, 2, 4 or "
                                "8 at a multiple of that",
                                size, spec.address.value),
                    fmt::format("a part of it: {}:{}", name, part));
  spec.on = reads ? perf::BreakOn::kAccess : perf::BreakOn::kWrite;
  spec.size_bytes = static_cast<std::uint8_t>(size);
  return spec;
}

Result<std::string> resolve_filter(const std::string& text, std::int32_t pid) {
  auto unfit = [&](std::string why, std::string fix) {
    return fail(ErrorCode::kUsage, "cannot record only " + text, std::move(why), std::move(fix));
  };
  auto place = place_of(text, pid);
  if (!place) return fail(std::move(place.error()));
  if (place->size_bytes == 0)
    return unfit("nobody says how long it is", "with its size in bytes: " + text + ":64");
  auto mappings = mappings_now(pid);
  if (!mappings) return fail(std::move(mappings.error()));
  const Address begin = place->spec.address;
  for (const Mapping& mapping : *mappings) {
    if (begin < mapping.begin || begin >= mapping.end || !mapping.has_file()) continue;
    if (mapping.path.find_first_of(" ,\t\n") != std::string::npos)
      return unfit("the kernel takes no spaces and commas in the path of a file: " + mapping.path,
                   "another path of it");
    return fmt::format("filter {:#x}/{:#x}@{}",
                       begin.value - mapping.begin.value + mapping.file_offset_bytes,
                       place->size_bytes, mapping.path);
  }
  return unfit("it belongs to no file that is mapped", "a function of the program's own file");
}

Result<std::vector<perf::BreakpointSpec>> resolve_watches(const std::vector<std::string>& texts,
                                                          std::int32_t pid, bool reads) {
  if (texts.size() > perf::kDebugRegisters)
    return fail(ErrorCode::kUsage, fmt::format("cannot watch {} places", texts.size()),
                "a processor has four debug registers", "four at most");
  std::vector<perf::BreakpointSpec> specs;
  for (const std::string& text : texts) {
    auto spec = resolve_watch(text, pid, reads);
    if (!spec) return fail(std::move(spec.error()));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

}  // namespace tailtrace
