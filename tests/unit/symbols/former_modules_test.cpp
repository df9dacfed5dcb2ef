#include <gtest/gtest.h>

#include "decoder/code/former_maps.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/process_symbols.h"
#include "tests/support/frame_of.h"

namespace tailtrace {
namespace {

constexpr Address kPlace{0x10000000};

std::string library(std::string_view name) {
  return std::string(TAILTRACE_BINARY_DIR "/tests/programs/") + std::string(name) + "_any.so";
}

std::string was(std::string_view until, std::string_view name) {
  std::string lines, maps = maps_of_module(library(name), kPlace);
  for (std::size_t end; (end = maps.find('\n')) != maps.npos; maps.erase(0, end + 1))
    lines.append("was ").append(until).append(" ").append(maps.substr(0, end + 1));
  return lines;
}

// Where a function of a library is; the same for all of them.
Address place_of(const std::string& path, std::string_view name) {
  auto file = ElfFile::open(path);
  EXPECT_TRUE(file);
  for (const ElfSymbol& symbol : file->symbols())
    if (symbol.name == name) return kPlace + symbol.value;
  return {};
}

struct FormerModules : testing::Test {
  // Of such a history.
  std::unique_ptr<ProcessSymbols> symbols(const std::string& maps, const std::string& former) {
    auto symbols = std::make_unique<ProcessSymbols>(parse_maps(maps));
    ThreadFrame frame = frame_of(std::make_shared<CodeImage>());
    frame.former_maps = former;
    symbols->know_history(frame);
    return symbols;
  }
  const Address step = place_of(library("first"), "first_step");
};

TEST_F(FormerModules, HaveNamesUntilOtherCodeCame) {
  ASSERT_EQ(step, place_of(library("second"), "second_step"));
  auto both = symbols(maps_of_module(library("second"), kPlace), was("3", "first"));
  for (std::uint32_t epoch : {0, 2, 3, 9}) {
    const std::string name = epoch < 3 ? "first" : "second";
    const Function& function = both->function_in(step, {epoch});
    EXPECT_EQ(function.name, name + "_step");
    EXPECT_EQ(function.module, library(name));
    EXPECT_EQ(function.entry, step);
    auto line = both->line_at(step, {epoch});
    ASSERT_TRUE(line);
    EXPECT_EQ(base_name(line->file), name + ".c");
    auto inlined = both->inlined_at(step, {epoch});
    ASSERT_EQ(inlined.size(), 1u);
    EXPECT_EQ(inlined[0].name, name + "_inlined");
    ASSERT_EQ(both->inlined_into(step, {epoch}).size(), 1u);
    EXPECT_EQ(both->inlined_into(step, {epoch})[0].function.name, name + "_inlined");
    EXPECT_EQ(both->address_in_file(step, {epoch}), step - kPlace);
    const auto* lines = both->lines_of_unit(step, {epoch});
    ASSERT_TRUE(lines != nullptr && !lines->empty());
    EXPECT_EQ(base_name(lines->front().file), name + ".c");
  }
  EXPECT_EQ(both->function_at(step).name, "second_step");
  EXPECT_EQ(both->modules().size(), 0u);  // no code is known
}

TEST_F(FormerModules, CameOneAfterTheOther) {
  const std::string former = was("-", "first") + was("5", "second") + was("2", "first");
  auto all = symbols("", former);
  for (std::uint32_t epoch : {0, 1, 2, 4, 5, 6})
    EXPECT_EQ(all->function_in(step, {epoch}).name,
              epoch < 2 || epoch >= 5 ? "first_step" : "second_step");
  // What is back in its place is what it was.
  EXPECT_EQ(&all->function_in(step, {0}), &all->function_in(step, {5}));
  EXPECT_EQ(all->function_at(step).name, "first_step");
  EXPECT_TRUE(all->has_anything(step));
}

TEST_F(FormerModules, AreAmongWhatWasMappedThen) {
  const std::string program = "1000-2000 r-xp 00000000 00:00 0 /bin/program\n";
  auto all = symbols(program + maps_of_module(library("second"), kPlace),
                     was("2", "first") +
                         "was - 10002000-10003000 r-xp 00000000 00:00 0 /lib/hidden.so\n"
                         "was - 30000000-30001000 r-xp 00000000 00:00 0 /lib/beside.so\n");
  auto paths_in = [&](std::uint32_t epoch) {
    std::vector<std::string> paths;
    for (const Mapping& mapping : all->mappings_in({epoch}))
      if (paths.empty() || paths.back() != mapping.path) paths.push_back(mapping.path);
    return paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(paths_in(1), (Paths{"/bin/program", library("first"), "/lib/beside.so"}));
  EXPECT_EQ(paths_in(2), (Paths{"/bin/program", library("second"), "/lib/beside.so"}));
}

TEST_F(FormerModules, LeaveAloneWhatWasAroundThem) {
  auto gone = symbols("1000-2000 r-xp 00000000 00:00 0 [heap]\n", was("-", "first"));
  EXPECT_EQ(gone->function_in(step, {0}).name, "first_step");
  const Function& below = gone->function_in(Address{0x3000}, {0});
  EXPECT_EQ(below.name, "");
  EXPECT_EQ(below.begin, Address{0x2000});
  EXPECT_EQ(below.end, kPlace);
  const Function& above = gone->function_in(Address{0x20000000}, {0});
  EXPECT_EQ(above.name, "");
  EXPECT_GT(above.begin, step);
}

// Only that it was other code is known of what came last.
TEST_F(FormerModules, DoNotNameWhatCameAfterThem) {
  auto gone = symbols("", was("2", "first"));
  EXPECT_EQ(gone->function_in(step, {1}).name, "first_step");
  EXPECT_EQ(gone->function_in(step, {2}).name, "");
  EXPECT_EQ(gone->function_at(step).name, "");
}

// Data may lie where code was; what was executed there is the code.
TEST_F(FormerModules, AreNotHiddenByData) {
  auto under_data =
      symbols("10000000-10010000 rw-p 00000000 00:00 0 /usr/share/data\n", was("-", "first"));
  EXPECT_EQ(under_data->function_in(step, {0}).name, "first_step");
}

TEST_F(FormerModules, ThatCannotBeReadHaveNoNamesOfOthers) {
  const std::string lost = "was 1 10000000-10010000 r-xp 00000000 00:00 0 /no/such/library.so\n";
  auto both = symbols(maps_of_module(library("second"), kPlace), lost);
  EXPECT_EQ(both->function_in(step, {0}).name, "");
  EXPECT_EQ(both->function_in(step, {0}).module, "/no/such/library.so");
  EXPECT_FALSE(both->line_at(step, {0}));
  EXPECT_EQ(both->function_in(step, {1}).name, "second_step");
}

TEST(FormerModuleLines, AreReadInGroups) {
  const auto modules = parse_former_maps(
      "was 4 1000-2000 r--p 00000000 fe:01 1  /lib/a.so\n"
      "was 4 2000-3000 r-xp 00001000 fe:01 1  /lib/a.so\n"
      "was 3 1000-2000 r-xp 00000000 fe:01 1  /lib/a.so (deleted)\n"
      "was 99999999999 5000-6000 r-xp 00000000 fe:01 1  /lib/b.so\n"
      "was - nonsense\n"
      "7000-8000 r-xp 00000000 fe:01 1  /lib/c.so\n");
  ASSERT_EQ(modules.size(), 3u);
  EXPECT_EQ(modules[0].until, Epoch{4});
  EXPECT_EQ(modules[0].mappings.size(), 2u);
  EXPECT_EQ(modules[0].find({0x2800}), &modules[0].mappings[1]);
  EXPECT_EQ(modules[0].find({0x3000}), nullptr);
  EXPECT_EQ(modules[1].mappings[0].path, "deleted: /lib/a.so (deleted)");
  EXPECT_EQ(modules[2].until, std::nullopt);
}

}  // namespace
}  // namespace tailtrace
