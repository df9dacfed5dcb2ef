// The vDSO of the test itself, whose functions the dynamic linker finds as well.
#include "decoder/symbols/dynamic_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <set>

#include "decoder/symbols/mapping.h"
#include "decoder/symbols/process_symbols.h"
#include "tests/support/frame_of.h"

namespace tailtrace {
namespace {

class VdsoNames : public testing::Test {
 protected:
  void SetUp() override {
    const Address begin{::getauxval(AT_SYSINFO_EHDR)};
    if (begin.is_null()) GTEST_SKIP() << "this kernel has none";
    mappings_ = parse_maps(*process_maps(::getpid()));
    for (const Mapping& mapping : mappings_)
      if (mapping.begin == begin) vdso_ = mapping;
    ASSERT_EQ(vdso_.path, "[vdso]");
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(begin.value);
    image_.assign(bytes, bytes + (vdso_.end - vdso_.begin));
  }

  std::uint64_t linked(const char* name) const {
    void* vdso = ::dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<std::uint64_t>(::dlsym(vdso, name));
  }

  std::vector<Mapping> mappings_;
  Mapping vdso_;
  Bytes image_;
};

constexpr const char* kFunctions[] = {"__vdso_clock_gettime", "clock_gettime", "__vdso_time",
                                      "__vdso_gettimeofday", "__vdso_getcpu"};

TEST_F(VdsoNames, FunctionsAreWhereTheDynamicLinkerFindsThem) {
  std::map<std::string, std::uint64_t> found;
  for (const ElfSymbol& symbol : dynamic_symbols(image_)) {
    EXPECT_GT(symbol.size_bytes, 0u) << symbol.name;
    found[symbol.name] = symbol.value;
  }
  for (const char* name : kFunctions)
    EXPECT_EQ(vdso_.begin.value + found[name], linked(name)) << name;
}

TEST_F(VdsoNames, AnyPartOfItsEndMayBeMissing) {
  const std::size_t all = dynamic_symbols(image_).size();
  std::size_t before = 0;
  for (std::size_t size = 0; size <= image_.size(); ++size) {
    const Bytes part(image_.begin(), image_.begin() + static_cast<std::ptrdiff_t>(size));
    const std::size_t count = dynamic_symbols(part).size();
    ASSERT_GE(count, before) << size;
    before = count;
  }
  EXPECT_EQ(before, all);
}

TEST_F(VdsoNames, NamesAreInTheCodeOfAHistory) {
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add(vdso_.begin, image_, nullptr));
  ProcessSymbols symbols(mappings_);
  symbols.know_history(frame_of(code));
  const Address entry{linked("__vdso_clock_gettime")};
  const Function& function = symbols.function_at(entry + 1);
  EXPECT_NE(function.name.find("clock_gettime"), std::string::npos) << function.name;
  EXPECT_EQ(function.entry, entry);
  EXPECT_EQ(function.module, "[vdso]");
  EXPECT_EQ(symbols.also_named(entry).size(), 1u);
  std::set<std::string> names;
  symbols.each_function([&](const Function& one) { return names.insert(one.name), true; });
  for (const char* name : kFunctions) EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(VdsoNames, WhatIsNoneHasNoNames) {
  const Bytes no_image(image_.size(), 0x90);
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add(vdso_.begin, no_image, nullptr));
  ProcessSymbols symbols(mappings_);
  symbols.know_history(frame_of(code));
  EXPECT_EQ(symbols.function_at(vdso_.begin + 0x800).name, "");
  EXPECT_EQ(symbols.function_at(vdso_.begin + 0x800).module, "[vdso]");
  EXPECT_TRUE(symbols.problems().empty());
}

template <class T>
void append(Bytes& image, const T& value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  image.insert(image.end(), bytes, bytes + sizeof value);
}

// As many functions as are asked for, all of this name.
Bytes image_of(std::size_t functions, const std::string& name) {
  constexpr std::uint64_t kDynamic = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  constexpr std::uint64_t kSymbols = kDynamic + 3 * sizeof(Elf64_Dyn);
  Elf64_Ehdr header{};
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_DYNAMIC;
  segment.p_offset = kDynamic;
  segment.p_filesz = kSymbols - kDynamic;
  Elf64_Sym symbol{};
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = 1;
  symbol.st_value = 0x100;
  Bytes image;
  append(image, header);
  append(image, segment);
  append(image, Elf64_Dyn{DT_SYMTAB, {kSymbols}});
  append(image, Elf64_Dyn{DT_STRTAB, {kSymbols + functions * sizeof symbol}});
  append(image, Elf64_Dyn{DT_STRSZ, {name.size() + 1}});
  for (std::size_t i = 0; i < functions; ++i) append(image, symbol);
  image.insert(image.end(), name.begin(), name.end());
  image.push_back(0);
  return image;
}

TEST(DynamicSymbols, NamesThatAreLongerThanAnyAreNone) {
  EXPECT_EQ(dynamic_symbols(image_of(3, "clock")).size(), 3u);
  EXPECT_EQ(dynamic_symbols(image_of(10000, std::string(500000, 'x'))).size(), 0u);
}

}  // namespace
}  // namespace tailtrace
