// ELF files from anywhere, as the modules of a recording are: names, lines and code come of them,
// or an error, and nothing that lies outside of the file.
#include <cassert>
#include <fstream>

#include "decoder/base/file.h"
#include "decoder/code/elf_code.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/module_symbols.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/qemu_recording.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxSeed_bytes = 1 << 16;
constexpr int kMaxLooks = 40;

// The file that every input is written to.
const std::string& path() {
  static const TempFolder folder;
  static const std::string made = folder.file("module");
  return made;
}

void look_at(ModuleSymbols& module, std::uint64_t address) {
  Function function = module.function_at(address);
  assert(function.begin <= function.end);
  if (const auto begin = module.fde_begin(address)) assert(*begin <= address);
  if (const auto line = module.line_at(address))
    (void)module.line_entries(address, line->file, line->line);
  (void)module.lines_of_unit(address);
  (void)module.inlined_at(address);
  (void)module.inlined_into(address);
  for (const Function& other : module.also_named(address)) assert(other.entry.value == address);
}

void look_through(const ElfFile& file, ModuleSymbols& module) {
  (void)file.build_id();
  (void)file.debug_link();
  module.each_function([](const Function& function) {
    assert(function.begin <= function.end);
    return true;
  });
  for (bool of_statements : {false, true})
    module.each_line(of_statements, [](const SourceLine& line) { assert(line.line != 0); });
  int looks = 0;
  for (const ElfSymbol& symbol : file.symbols()) {
    if (++looks > kMaxLooks) break;
    look_at(module, symbol.value);
    look_at(module, symbol.value + symbol.size_bytes);
  }
  for (const ElfSegment& segment : file.segments()) {
    if (++looks > kMaxLooks) break;
    look_at(module, segment.address);
    const Mapping mapping{{segment.address},
                          {segment.address + 1},
                          segment.file_offset_bytes,
                          segment.executable,
                          path()};
    (void)load_bias(file.segments(), {&mapping, 1}, mapping);
  }
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::vector<Bytes> seeds;
  for (const char* name : {"inlined", "inlined_often_split", "counter", "signals", "several_names"})
    seeds.push_back(*read_file(built_program(name), kMaxSeed_bytes));
  return seeds;
}

void fuzz_one(ByteSpan input) {
  std::ofstream(path(), std::ios::binary | std::ios::trunc) << as_text(input);
  Result<ElfFile> file = ElfFile::open(path());
  Result<std::unique_ptr<ModuleSymbols>> module = ModuleSymbols::open(path());
  assert(file.has_value() == module.has_value());
  if (file) look_through(*file, **module);
  if (auto in_memory = ElfFile::of_image("[vdso]", Bytes(input.begin(), input.end()))) {
    auto named = ModuleSymbols::of(std::move(*in_memory));
    named->each_function([&](const Function& one) {
      look_at(*named, one.entry.value);
      return true;
    });
  }
  CodeImage image;
  Result<void> added = add_elf_code(image, path(), std::nullopt);
  assert(added || !added.error().what.empty());
}

}  // namespace tailtrace
