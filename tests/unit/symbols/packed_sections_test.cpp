#include "decoder/symbols/packed_sections.h"

#include <gelf.h>
#include <gtest/gtest.h>

#include <map>

#include "decoder/symbols/elf_file.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

struct Section {
  bool has_bytes = false, packed = false;
  std::string bytes;
};

std::map<std::string, Section> debug_sections(const ElfFile& file) {
  std::map<std::string, Section> found;
  std::size_t names = 0;
  elf_getshdrstrndx(file.elf(), &names);
  for (Elf_Scn* s = elf_nextscn(file.elf(), nullptr); s != nullptr;
       s = elf_nextscn(file.elf(), s)) {
    GElf_Shdr header;
    gelf_getshdr(s, &header);
    const std::string name = elf_strptr(file.elf(), names, header.sh_name);
    if (!name.starts_with(".debug_")) continue;
    Section& section = found[name];
    section.has_bytes = header.sh_type != SHT_NOBITS;
    section.packed = (header.sh_flags & SHF_COMPRESSED) != 0;
    Elf_Data* data = elf_getdata(s, nullptr);
    if (data != nullptr && data->d_buf != nullptr)
      section.bytes.assign(static_cast<const char*>(data->d_buf), data->d_size);
  }
  return found;
}

class PackedSections : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(By, PackedSections, testing::Values("zlib", "zstd"),
                         [](const auto& info) { return info.param; });

TEST_P(PackedSections, AreWhatTheyWereBeforeObjcopyCompressedThem) {
  TempFolder folder;
  const std::string plain = TAILTRACE_BINARY_DIR "/tests/programs/symbols_sample";
  const std::string packed = folder.file("packed");
  const std::string pack = std::string("objcopy --compress-debug-sections=") + GetParam();
  ASSERT_EQ(std::system((pack + " " + plain + " " + packed).c_str()), 0);
  auto truth = ElfFile::open(plain), file = ElfFile::open(packed);
  ASSERT_TRUE(truth && file);
  ASSERT_TRUE(debug_sections(*file).at(".debug_info").packed);
  static constexpr std::string_view kUnused[] = {".debug_str"};
  const auto bytes = unpack_sections(file->elf(), kUnused);
  const auto sections = debug_sections(*file);
  EXPECT_FALSE(sections.at(".debug_str").has_bytes);
  for (const auto& [name, section] : debug_sections(*truth)) {
    if (name == ".debug_str") continue;
    ASSERT_TRUE(sections.contains(name)) << name;
    EXPECT_TRUE(sections.at(name).has_bytes) << name;
    EXPECT_FALSE(sections.at(name).packed) << name;
    EXPECT_TRUE(sections.at(name).bytes == section.bytes) << name;
  }
}

// What is not compressed costs nothing, and is not touched.
TEST(UnpackedSections, AreLeftAsTheyAre) {
  auto file = ElfFile::open(TAILTRACE_BINARY_DIR "/tests/programs/symbols_sample");
  ASSERT_TRUE(file);
  static constexpr std::string_view kUnused[] = {".debug_str"};
  for (const UnpackedBytes& bytes : unpack_sections(file->elf(), kUnused))
    EXPECT_EQ(bytes, nullptr);
  EXPECT_TRUE(debug_sections(*file).at(".debug_str").has_bytes);
}

}  // namespace
}  // namespace tailtrace
