#include "plugin/recorder/watch_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "decoder/base/bytes.h"
#include "decoder/history/location.h"
#include "decoder/history/symbolizer.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/mapping.h"
#include "plugin/recorder/entries.h"
#include "plugin/recorder/symbol_lookup.h"

namespace tailtrace {
namespace {

struct Words {
  std::string name;  // or
  std::optional<std::uint64_t> address;
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> size_bytes;
};

constexpr std::uint64_t kUserEnd = std::uint64_t{1} << 47;  // what is above is the kernel's

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
    if (*words.address >= kUserEnd) return unusable(text, "no program has such an address");
    return words;
  }
  if (std::size_t plus = rest.rfind('+'); plus != std::string_view::npos)
    if (auto offset = number_in(rest.substr(plus + 1))) {
      words.offset = offset;
      rest = rest.substr(0, plus);
    }
  words.name = rest;
  if (words.name.empty()) return unusable(text, "there is no name", "NAME, NAME:SIZE, *ADDRESS");
  return words;
}

// What its name means, or can be said to mean it alone.
std::string full_name(const NamedSymbol& symbol, const NamedSymbol& other) {
  return symbol.name != other.name ? symbol.name
                                   : fmt::format("{}`{}", base_name(symbol.module), symbol.name);
}

Result<std::string> program_path(std::int32_t pid) {
  std::error_code error;
  std::string path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  if (error) return fail(ErrorCode::kGone, "cannot look up names in the program", error.message());
  if (path.ends_with(kDeletedWord)) path.resize(path.size() - kDeletedWord.size());
  return path;
}

Result<std::vector<Mapping>> mappings_now(std::int32_t pid) {
  auto maps = process_maps(pid);
  if (!maps) return fail(std::move(maps.error()));
  return mappings_of(pid, *maps);
}

enum class NamesOf : std::uint8_t { kProgram, kLibraries };

void keep_if_any(std::vector<NamedSymbol>& symbols, bool (*is_better)(const NamedSymbol&)) {
  if (std::ranges::any_of(symbols, is_better)) std::erase_if(symbols, std::not_fn(is_better));
}

// Parts that compilers put apart go by their whole name only. The dynamic linker has functions of
// its own that go by names of indirect ones (memcpy), for as long as none is chosen. Of those with
// just that name, the program's own file has one at most.
Result<std::vector<NamedSymbol>> symbols_in(const SymbolQuery& query, std::int32_t pid,
                                            NamesOf files) {
  auto program = program_path(pid);
  if (!program) return fail(std::move(program.error()));
  auto mappings = mappings_now(pid);
  if (!mappings) return fail(std::move(mappings.error()));
  std::erase_if(*mappings, [&](const Mapping& mapping) {
    return (mapping.path == *program) != (files == NamesOf::kProgram);
  });
  NamedSymbols symbols = symbols_named(query, *mappings);
  std::erase_if(symbols.found, &NamedSymbol::is_apart);
  keep_if_any(symbols.found, [](const NamedSymbol& symbol) { return !symbol.is_old; });
  keep_if_any(symbols.found, [](const NamedSymbol& symbol) {
    return symbol.kind == NamedSymbol::Kind::kResolver;
  });
  if (symbols.is_exact && files == NamesOf::kProgram && symbols.found.size() > 1)
    symbols.found.resize(1);
  return std::move(symbols.found);
}

// Its resolver tells which one it is. In a program without a dynamic linker that has not been made
// ready for it where the program begins.
Result<NamedSymbol> chosen_of(const std::string& text, NamedSymbol indirect,
                              const WatchedProgram& program) {
  auto unknown = [&](std::string why) {
    return unusable(text, std::move(why), "the name of the one that is chosen, or *ADDRESS");
  };
  if (!program.result_of || !has_dynamic_linker(program.pid))
    return unknown("it is chosen as the program starts");
  if (auto ok = program.map_libraries(); !ok) return fail(std::move(ok.error()));
  auto chosen = program.result_of(indirect.address);
  if (!chosen) return fail(std::move(chosen.error()));
  if (*chosen == 0) return unknown("none is chosen");
  indirect.address = {*chosen};
  indirect.size_bytes = 0;
  return indirect;
}

SymbolQuery query_of(const std::string& name) {
  const std::size_t tick = name.find('`');
  if (tick == name.npos) return {"", name, true};
  return {name.substr(0, tick), name.substr(tick + 1), true};
}

// What the program's own file has goes before what its libraries have.
Result<NamedSymbol> symbol_of(const std::string& text, const std::string& name,
                              const WatchedProgram& program) {
  const SymbolQuery query = query_of(name);
  auto found = symbols_in(query, program.pid, NamesOf::kProgram);
  if (found && found->empty()) {
    if (auto ok = program.map_libraries(); !ok) return fail(std::move(ok.error()));
    found = symbols_in(query, program.pid, NamesOf::kLibraries);
  }
  if (!found) return fail(std::move(found.error()));
  auto mappings = mappings_now(program.pid);
  if (found->empty() && mappings && !query.module.empty() && !is_mapped(query.module, *mappings))
    return unusable(text, "it has mapped no file that goes by the name " + query.module,
                    "the name of a file in /proc/PID/maps");
  if (found->empty())
    return unusable(text,
                    fmt::format("no symbol table of {}, nor of its libraries, has that name",
                                program_path(program.pid).value_or("the program")),
                    "VARIABLE, FUNCTION, FILE:LINE, MODULE+OFFSET or *ADDRESS; MODULE`NAME for one "
                    "of a library that is loaded later");
  const NamedSymbol& first = found->front();
  if (found->size() == 1 && first.kind == NamedSymbol::Kind::kResolver)
    return chosen_of(text, first, program);
  if (found->size() == 1) return first;
  return unusable(
      text, fmt::format("{} symbols may be meant", found->size()),
      fmt::format("{} or {}", full_name(first, (*found)[1]), full_name((*found)[1], first)));
}

Result<perf::BreakpointSpec> look_up(const std::string& text, const Words& words,
                                     const WatchedProgram& program, bool& is_data,
                                     std::uint64_t& size) {
  perf::BreakpointSpec spec;
  auto symbol = symbol_of(text, words.name, program);
  if (!symbol && words.offset) {
    const auto mappings = mappings_now(program.pid);
    const auto place =
        mappings ? place_in_module(words.name, *words.offset, *mappings) : std::optional<Address>();
    if (place) return spec.address = *place, spec;
  }
  if (!symbol) return fail(std::move(symbol.error()));
  const std::uint64_t offset = words.offset.value_or(0);
  if (offset > symbol->size_bytes)
    return unusable(text, fmt::format("{} has {} bytes only", words.name, symbol->size_bytes));
  is_data = symbol->kind == NamedSymbol::Kind::kVariable;
  size = symbol->size_bytes - offset;
  spec.address = {symbol->address.value + offset};
  return spec;
}

bool is_line(const std::string& text) {
  const auto location = parse_location(text);
  return location && location->line != 0;
}

// FILE:LINE looks like NAME:SIZE, and is it where nothing has that name.
Result<perf::BreakpointSpec> line_of(const std::string& text, const WatchedProgram& program) {
  auto mappings = mappings_now(program.pid);
  if (!mappings) return fail(std::move(mappings.error()));
  auto entries = entries_of(text, program.pid, *mappings);
  if (!entries) return unusable(text, entries.error().why, entries.error().fix);
  const auto [first, last] = std::pair(entries->begin()->first, entries->rbegin()->first);
  if (first != last)
    return unusable(text, fmt::format("its code begins in {} places", entries->size()),
                    fmt::format("*{:#x} or *{:#x}", first.value, last.value));
  perf::BreakpointSpec spec;
  spec.address = first;
  return spec;
}

// What a user names, before anybody asks what can be done with it.
struct Place {
  perf::BreakpointSpec spec;
  bool is_data = false;
  std::optional<std::uint64_t> said_size_bytes;
  std::uint64_t size_bytes = 0;  // as said, else as the symbol table has it
};

Result<Place> place_of(const std::string& text, const WatchedProgram& program) {
  auto words = words_of(text);
  if (!words) return fail(std::move(words.error()));
  Place place;
  if (words->address) {
    place.spec.address = {*words->address};
  } else {
    auto found = look_up(text, *words, program, place.is_data, place.size_bytes);
    if (!found && is_line(text)) {
      found = line_of(text, program);
      words->size_bytes.reset();
    }
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

WatchedProgram watched(FollowedProgram& program) {
  auto map_libraries = [&program, are_mapped = false]() mutable -> Result<void> {
    if (std::exchange(are_mapped, true)) return {};
    return program.run_to(program_entry(program.pid()));
  };
  return {program.pid(), map_libraries,
          [&program](Address function) { return program.result_of(function); }};
}

Result<std::string> awaited_module(const std::string& text, const WatchedProgram& program) {
  auto words = words_of(text);
  if (!words) return fail(std::move(words.error()));
  const std::string module = query_of(words->name).module;
  if (module.empty()) return module;
  auto mappings = mappings_now(program.pid);
  if (mappings && !is_mapped(module, *mappings)) {
    if (auto ok = program.map_libraries(); !ok) return fail(std::move(ok.error()));
    mappings = mappings_now(program.pid);
  }
  if (!mappings) return fail(std::move(mappings.error()));
  return is_mapped(module, *mappings) ? std::string() : module;
}

Error never_loaded(const std::string& text) {
  return {ErrorCode::kUsage, "there was no " + text,
          "the program loaded no file that goes by the name " + query_of(text).module,
          "LD_DEBUG=files, with which the program tells what it loads", ""};
}

Result<perf::BreakpointSpec> resolve_watch(const std::string& text, const WatchedProgram& program,
                                           bool reads) {
  auto place = place_of(text, program);
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

Result<std::string> resolve_filter(const std::string& text, const WatchedProgram& program) {
  auto unfit = [&](std::string why, std::string fix) {
    return fail(ErrorCode::kUsage, "cannot record only " + text, std::move(why), std::move(fix));
  };
  auto place = place_of(text, program);
  if (!place) return fail(std::move(place.error()));
  if (place->size_bytes == 0)
    return unfit("nobody says how long it is",
                 is_line(text) ? "a function" : "with its size in bytes: " + text + ":64");
  auto mappings = mappings_now(program.pid);
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
  return unfit("it belongs to no file that is mapped", "a function of a file");
}

Result<void> check_watches(const std::vector<std::string>& places) {
  if (places.size() <= perf::kDebugRegisters) return {};
  return fail(ErrorCode::kUsage, fmt::format("cannot watch {} places", places.size()),
              "a processor has four debug registers", "four at most");
}

}  // namespace tailtrace
