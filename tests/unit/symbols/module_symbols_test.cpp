#include "decoder/symbols/module_symbols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "decoder/history/location.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

const std::string kSample = TAILTRACE_BINARY_DIR "/tests/programs/symbols_sample";

// What a command of the binutils prints: they are the truth here.
std::string output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), n);
  EXPECT_FALSE(text.empty()) << command;
  return text;
}

struct NamedAddress {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::string name;
};

// The functions with a size that `nm` lists.
std::vector<NamedAddress> functions_of(const std::string& path) {
  std::istringstream lines(output_of("nm -S " + path));
  std::vector<NamedAddress> functions;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    NamedAddress f;
    std::string type;
    words >> std::hex >> f.address >> f.size_bytes >> type >> f.name;
    if (words && (type == "T" || type == "t" || type == "W")) functions.push_back(f);
  }
  return functions;
}

std::unique_ptr<ModuleSymbols> open_module(const std::string& path) {
  auto module = ModuleSymbols::open(path);
  EXPECT_TRUE(module) << module.error().to_string();
  return module ? std::move(*module) : nullptr;
}

std::uint64_t address_of(const std::string& name) {
  for (const NamedAddress& f : functions_of(kSample))
    if (f.name == name) return f.address;
  ADD_FAILURE() << "no function " << name;
  return 0;
}

TEST(ModuleSymbols, NameEveryFunctionThatNmNames) {
  auto module = open_module(kSample);
  std::vector<NamedAddress> functions = functions_of(kSample);
  ASSERT_GT(functions.size(), 10u);
  std::set<std::string> names;
  for (const NamedAddress& f : functions) names.insert(f.name);
  for (const NamedAddress& f : functions)
    for (std::uint64_t at : {f.address, f.address + f.size_bytes - 1}) {
      Function found = module->function_at(at);
      EXPECT_EQ(names.count(found.symbol_name), 1u) << f.name << " " << found.symbol_name;
      EXPECT_EQ(found.entry.value, f.address) << f.name;
      EXPECT_LE(found.begin.value, at);
      EXPECT_GT(found.end.value, at);
    }
}

TEST(ModuleSymbols, KnowWhereFunctionsBeginInAStrippedFile) {
  const TempFolder folder;
  const std::string stripped = folder.file("stripped");
  ASSERT_EQ(std::system(("strip -o " + stripped + " " + kSample).c_str()), 0);
  auto module = open_module(stripped);
  for (const NamedAddress& f : functions_of(kSample)) {
    EXPECT_EQ(module->fde_begin(f.address), f.address) << f.name;
    EXPECT_EQ(module->fde_begin(f.address + f.size_bytes - 1), f.address) << f.name;
    EXPECT_NE(module->fde_begin(f.address + f.size_bytes), f.address) << f.name;
  }
  EXPECT_EQ(module->fde_begin(0), std::nullopt);
}

// Made as GDB's manual says (MiniDebugInfo), but that no name is left out.
class MiniDebugInfo : public testing::Test {
 protected:
  void SetUp() override {
    run("strip -o " + stripped() + " " + kSample);
    run("objcopy --strip-debug " + kSample + " " + folder_.file("mini"));
    run("xz --check=crc32 " + folder_.file("mini"));
  }

  static void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0); }
  std::string stripped() const { return folder_.file("stripped"); }
  std::string packed() const { return folder_.file("mini.xz"); }
  // How many of the functions that nm names are there.
  static std::size_t named_by(ModuleSymbols& module) {
    std::map<std::uint64_t, std::set<std::string>> names;
    const std::vector<NamedAddress> functions = functions_of(kSample);
    for (const NamedAddress& f : functions) names[f.address].insert(f.name);
    return static_cast<std::size_t>(std::ranges::count_if(functions, [&](const NamedAddress& f) {
      const Function found = module.function_at(f.address + f.size_bytes - 1);
      return found.entry.value == f.address && names[f.address].contains(found.symbol_name);
    }));
  }
  // The stripped file with what was packed.
  std::unique_ptr<ModuleSymbols> open_with_packed() {
    run("objcopy --add-section .gnu_debugdata=" + packed() + " " + stripped());
    return open_module(stripped());
  }

 private:
  TempFolder folder_;
};

TEST_F(MiniDebugInfo, NamesTheFunctionsOfAStrippedFile) {
  EXPECT_LT(named_by(*open_module(stripped())), functions_of(kSample).size());
  EXPECT_EQ(named_by(*open_with_packed()), functions_of(kSample).size());
}

TEST_F(MiniDebugInfo, ThatIsCutShortIsNone) {
  const std::size_t without = named_by(*open_module(stripped()));
  std::filesystem::resize_file(packed(), std::filesystem::file_size(packed()) - 40);
  EXPECT_EQ(named_by(*open_with_packed()), without);
}

TEST(ModuleSymbols, KnowEachNameOfAFunction) {
  const std::string program = TAILTRACE_BINARY_DIR "/tests/programs/several_names";
  auto module = open_module(program);
  std::map<std::string, std::uint64_t> addresses;
  for (const NamedAddress& f : functions_of(program)) addresses[f.name] = f.address;
  ASSERT_EQ(addresses.at("twice"), addresses.at("doubled"));
  auto is_called = [&](std::uint64_t address, const std::string& name) {
    std::vector<Function> all = module->also_named(address);
    all.push_back(module->function_at(address));
    Location location;
    location.name = name;
    return std::ranges::any_of(all, [&](const Function& function) {
      return means(location, function) && function.entry.value == address;
    });
  };
  for (const auto& [name, address] : addresses) EXPECT_TRUE(is_called(address, name)) << name;
  // What a resolver may choose is called as it, the resolver is not.
  for (const auto& [name, address] : addresses)
    EXPECT_EQ(is_called(address, "sum_up_to"), name == "plain_sum" || name == "quick_sum") << name;
}

TEST(ModuleSymbols, ShowEachFunctionByEachOfItsNamesAndItsFile) {
  const std::string program = TAILTRACE_BINARY_DIR "/tests/programs/several_names";
  auto module = open_module(program);
  std::vector<Function> shown;
  EXPECT_TRUE(module->each_function([&](const Function& one) {
    shown.push_back(one);
    return true;
  }));
  auto is_shown = [&](const Location& location) {
    return std::ranges::any_of(shown, [&](const Function& one) { return means(location, one); });
  };
  for (const NamedAddress& f : functions_of(program)) {
    Location location;
    location.name = f.name;
    EXPECT_TRUE(is_shown(location)) << f.name;
  }
  for (const char* name : {"main", "never", "twice", "doubled", "plain_sum", "sum_up_to"})
    EXPECT_TRUE(is_shown(*parse_location(std::string("several_names.c:") + name))) << name;
  EXPECT_FALSE(is_shown(*parse_location("other.c:twice")));
}

TEST(ModuleSymbols, ShowFunctionsAsLongAsTheyAreWanted) {
  auto module = open_module(kSample);
  int all = 0, shown = 0;
  EXPECT_TRUE(module->each_function([&](const Function&) { return ++all; }));
  for (int wanted = 1; wanted < all; ++wanted, shown = 0) {
    EXPECT_FALSE(module->each_function([&](const Function&) { return ++shown < wanted; }));
    EXPECT_EQ(shown, wanted);
  }
}

TEST(ModuleSymbols, AreReadableInCxx) {
  auto module = open_module(kSample);
  EXPECT_EQ(module->function_at(address_of("_ZN6sample6Worker4stepEi")).name,
            "sample::Worker::step(int)");
  EXPECT_EQ(module->function_at(address_of("_ZN6sample5twiceIiEET_S1_")).name,
            "sample::twice<int>(int)");
  EXPECT_EQ(module->function_at(address_of("_ZL6hiddeni")).name, "hidden(int)");
  EXPECT_EQ(module->function_at(address_of("plain")).name, "plain");
  Function main = module->function_at(address_of("main"));
  EXPECT_EQ(main.debug_name, "main");
  EXPECT_TRUE(main.source_file.ends_with("symbols_sample.cpp")) << main.source_file;
}

TEST(ModuleSymbols, GiveTheLinesThatAddr2lineGives) {
  auto module = open_module(kSample);
  for (const char* name : {"main", "plain", "_ZN6sample6Worker4stepEi", "_ZL6hiddeni"}) {
    std::uint64_t begin = address_of(name);
    for (std::uint64_t at = begin; at < begin + 12; at += 4) {
      char address[20];
      snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(at));
      std::string truth = output_of("addr2line -e " + kSample + " " + address);
      truth = truth.substr(0, truth.find_first_of(" \n"));  // without the discriminator
      auto line = module->line_at(at);
      ASSERT_TRUE(line) << name;
      EXPECT_EQ(std::string(line->file) + ":" + std::to_string(line->line), truth) << name;
    }
  }
}

// "clamp a.c:7" of each function that an address is in, innermost first, as addr2line tells it.
std::vector<std::string> functions_at(const std::string& path, std::uint64_t at) {
  char address[20];
  snprintf(address, sizeof address, "%llx", static_cast<unsigned long long>(at));
  std::istringstream lines(output_of("addr2line -i -f -e " + path + " " + address));
  std::vector<std::string> functions;
  for (std::string name, line; std::getline(lines, name) && std::getline(lines, line);)
    functions.push_back(name + " " + line.substr(0, line.find(' ')));
  return functions;
}

TEST(ModuleSymbols, TellTheInlinedFunctionsThatAddr2lineTells) {
  TempFolder folder;
  const std::string path = folder.file("nested");
  std::ofstream(path + ".c") << R"(
#define INLINED static inline __attribute__((always_inline))
volatile int total;
INLINED void add(int n) { if (n > total) total += n; }
INLINED void add_all(int n) {
  for (int i = 0; i < n; ++i) add(i);
}
__attribute__((noinline)) void twice(int n) {
  add_all(n);
  total -= 1;
  add_all(n + 1);
}
int main(void) { twice(3); return total != 7; }
)";
  ASSERT_EQ(std::system(("gcc -O2 -g -o " + path + " " + path + ".c").c_str()), 0);
  auto module = open_module(path);
  std::set<std::size_t> depths;
  for (const NamedAddress& f : functions_of(path)) {
    if (f.name != "twice" && f.name != "main") continue;
    for (std::uint64_t at = f.address; at < f.address + f.size_bytes; ++at) {
      std::vector<std::string> found;
      auto line = module->line_at(at);
      ASSERT_TRUE(line);
      std::string place = std::string(line->file) + ":" + std::to_string(line->line);
      for (const InlinedFunction& inlined : module->inlined_at(at)) {
        found.push_back(inlined.name + " " + place);
        place = std::string(inlined.call_file) + ":" + std::to_string(inlined.call_line);
      }
      found.push_back(module->function_at(at).name + " " + place);
      EXPECT_EQ(found, functions_at(path, at)) << std::hex << at;
      std::vector<std::string> places;  // innermost first
      for (const InlinedPlace& inlined : module->inlined_into(at))
        if (inlined.holds({at})) places.insert(places.begin(), inlined.function.debug_name);
      ASSERT_EQ(places.size() + 1, found.size());
      for (std::size_t i = 0; i < places.size(); ++i)
        EXPECT_TRUE(found[i].starts_with(places[i] + " ")) << found[i];
      depths.insert(found.size());
    }
  }
  EXPECT_EQ(depths, (std::set<std::size_t>{1, 2, 3}));
}

TEST(ModuleSymbols, NameTheStubsThatObjdumpNames) {
  auto module = open_module(kSample);
  std::istringstream lines(output_of("objdump -d --section=.plt --section=.plt.sec " + kSample));
  int stubs = 0;
  for (std::string line; std::getline(lines, line);) {
    std::size_t begin = line.find('<'), end = line.find("@plt>:");
    if (begin == std::string::npos || end == std::string::npos) continue;
    std::string name = line.substr(begin + 1, end - begin - 1);
    std::uint64_t address = std::stoull(line, nullptr, 16);
    EXPECT_EQ(module->function_at(address).symbol_name, name + "@plt");
    EXPECT_EQ(module->function_at(address).entry.value, address);
    ++stubs;
  }
  EXPECT_GT(stubs, 2);
}

TEST(ModuleSymbols, OfAStrippedFileComeFromItsDebugFile) {
  TempFolder folder;
  std::string path = folder.file("sample"), debug = folder.file("sample.debug");
  ASSERT_EQ(std::system(("objcopy --only-keep-debug " + kSample + " " + debug +
                         " && objcopy --strip-all --add-gnu-debuglink=" + debug + " " + kSample +
                         " " + path)
                            .c_str()),
            0);
  auto module = open_module(path);
  EXPECT_EQ(module->debug_path(), debug);
  EXPECT_EQ(module->function_at(address_of("_ZL6hiddeni")).name, "hidden(int)");
  EXPECT_TRUE(module->line_at(address_of("main")));
  EXPECT_FALSE(module->debug_problem());
  // Without it, nothing is made up; only one that is there is missed.
  std::ofstream(debug) << "not an ELF file";
  module = open_module(path);
  ASSERT_TRUE(module->debug_problem());
  EXPECT_NE(module->debug_problem()->what.find(debug), std::string::npos);
  EXPECT_NE(module->debug_problem()->now.find(path), std::string::npos);
  std::filesystem::remove(debug);
  module = open_module(path);
  EXPECT_FALSE(module->debug_problem());
  EXPECT_FALSE(module->has_debug_info());
  EXPECT_FALSE(module->line_at(address_of("main")));
  EXPECT_EQ(module->function_at(address_of("_ZL6hiddeni")).name, "");
}

TEST(ModuleSymbols, OfCompressedDebugInformationAreTheSame) {
  TempFolder folder;
  const std::string path = folder.file("packed");
  ASSERT_EQ(std::system(("objcopy --compress-debug-sections=zlib " + kSample + " " + path).c_str()),
            0);
  auto plain = open_module(kSample), packed = open_module(path);
  ASSERT_TRUE(packed->has_debug_info());
  for (const NamedAddress& f : functions_of(kSample)) {
    const auto line = plain->line_at(f.address), same = packed->line_at(f.address);
    ASSERT_EQ(line.has_value(), same.has_value()) << f.name;
    if (line) {
      EXPECT_EQ(line->line, same->line) << f.name;
    }
    EXPECT_EQ(plain->function_at(f.address).name, packed->function_at(f.address).name);
  }
}

// Some compilers write no list of a unit's addresses.
TEST(ModuleSymbols, OfUnitsThatNoListHasAreFound) {
  TempFolder folder;
  const std::string path = folder.file("listed");
  std::ofstream(folder.file("a.c")) << "int other(int);\nint main(void) { return other(1); }\n";
  std::ofstream(folder.file("b.c")) << "\n\nint other(int n) {\n  return n - 1;\n}\n";
  ASSERT_EQ(std::system(("cd " + folder.path() +
                         " && gcc -g -c a.c b.c && objcopy -R .debug_aranges"
                         " -R .rela.debug_aranges b.o && gcc -o listed a.o b.o")
                            .c_str()),
            0);
  auto module = open_module(path);
  for (const NamedAddress& f : functions_of(path)) {
    if (f.name != "main" && f.name != "other") continue;
    const auto line = module->line_at(f.address);
    ASSERT_TRUE(line) << f.name;
    EXPECT_EQ(line->line, f.name == "main" ? 2u : 3u);
    EXPECT_EQ(module->function_at(f.address).debug_name, f.name);
  }
}

TEST(ModuleSymbols, OfAnotherBuildsDebugFileAreNotUsed) {
  TempFolder folder;
  std::string path = folder.file("sample");
  std::string other = TAILTRACE_BINARY_DIR "/tests/programs/nothing";
  ASSERT_EQ(
      std::system(("cp " + other + " " + folder.file("other.debug") + " && objcopy -S " +
                   "--add-gnu-debuglink=" + folder.file("other.debug") + " " + kSample + " " + path)
                      .c_str()),
      0);
  EXPECT_FALSE(open_module(path)->has_debug_info());
}

TEST(ModuleSymbols, RefuseWhatIsNoProgramOfOurs) {
  TempFolder folder;
  std::ofstream(folder.file("text")) << "not an ELF file\n";
  EXPECT_EQ(ModuleSymbols::open(folder.file("text")).error().code, ErrorCode::kBadInput);
  EXPECT_EQ(ModuleSymbols::open(folder.file("none")).error().code, ErrorCode::kSystem);
  EXPECT_FALSE(ModuleSymbols::open(folder.path()));
  std::ofstream(folder.file("empty"));
  EXPECT_FALSE(ModuleSymbols::open(folder.file("empty")));
}

// Damaged in every place in turn, a file gives names or an error, and nothing worse.
TEST(ModuleSymbols, SurviveDamagedFiles) {
  TempFolder folder;
  auto whole = read_file(kSample, 1 << 26);
  ASSERT_TRUE(whole);
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    Bytes bytes = *whole;
    if (i % 4 == 0) bytes.resize(random() % bytes.size());
    for (int n = 0; n < 20 && !bytes.empty(); ++n)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    for (std::size_t n = 0; n < 4 && bytes.size() > 64; ++n)
      bytes[32 + random() % 32] = static_cast<std::uint8_t>(random());
    std::string path = folder.file("damaged");
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    auto module = ModuleSymbols::open(path);
    if (!module) continue;
    for (std::uint64_t at = 0x1000; at < 0x4000; at += 13) {
      Function function = (*module)->function_at(at);
      EXPECT_LE(function.begin.value, at);
      EXPECT_GT(function.end.value, at);
      (*module)->line_at(at);
    }
  }
}

}  // namespace
}  // namespace tailtrace
