// ELF files made by hand: what of them is code, and where it lies.
#include "decoder/code/elf_code.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

using testing::HasSubstr;

struct Segment {
  std::uint64_t address;
  std::uint32_t flags;
  Bytes bytes;
};

// Headers, program headers, and then the segments' bytes, one behind the other.
template <class Header, class ProgramHeader>
Bytes make_elf(unsigned char elf_class, std::uint16_t machine,
               const std::vector<Segment>& segments) {
  Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = elf_class;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = machine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(ProgramHeader);
  header.e_phnum = static_cast<std::uint16_t>(segments.size());
  Bytes file(sizeof header + segments.size() * sizeof(ProgramHeader));
  std::memcpy(file.data(), &header, sizeof header);
  std::size_t at = sizeof header;
  for (const Segment& segment : segments) {
    ProgramHeader program{};
    program.p_type = PT_LOAD;
    program.p_flags = segment.flags;
    program.p_offset = static_cast<decltype(program.p_offset)>(file.size());
    program.p_vaddr = static_cast<decltype(program.p_vaddr)>(segment.address);
    program.p_filesz = program.p_memsz =
        static_cast<decltype(program.p_filesz)>(segment.bytes.size());
    std::memcpy(file.data() + at, &program, sizeof program);
    at += sizeof program;
    file.insert(file.end(), segment.bytes.begin(), segment.bytes.end());
  }
  return file;
}

Bytes elf64(const std::vector<Segment>& segments, std::uint16_t machine = EM_X86_64) {
  return make_elf<Elf64_Ehdr, Elf64_Phdr>(ELFCLASS64, machine, segments);
}

const std::vector<Segment> kTwo = {{0x1000, PF_R, {1, 2, 3}}, {0x3010, PF_R | PF_X, {0x90, 0xc3}}};

class ElfCode : public testing::Test {
 protected:
  Result<void> add(const Bytes& file, std::optional<Address> base = {}) {
    std::ofstream out(path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
    out.close();
    return add_elf_code(image_, path(), base);
  }
  std::string path() const { return folder_.file("program"); }
  Bytes at(std::uint64_t address) const {
    Bytes bytes(16);
    bytes.resize(image_.read({address}, bytes, image_.newest()));
    return bytes;
  }
  std::string why(const Result<void>& result) const {
    return result ? "it was taken" : result.error().why;
  }

  TempFolder folder_;
  CodeImage image_;
};

TEST_F(ElfCode, IsTheExecutableSegmentsWhereTheFileSays) {
  ASSERT_TRUE(add(elf64(kTwo)));
  EXPECT_EQ(at(0x3010), (Bytes{0x90, 0xc3}));
  EXPECT_EQ(at(0x1000), Bytes{}) << "data is no code";
}

TEST_F(ElfCode, MovesWithThePageOfItsLowestSegment) {
  ASSERT_TRUE(add(elf64(kTwo), Address{0x7f0000000000}));
  EXPECT_EQ(at(0x7f0000002010), (Bytes{0x90, 0xc3}));
  EXPECT_EQ(at(0x3010), Bytes{});
}

TEST_F(ElfCode, MayBeOf32Bits) {
  ASSERT_TRUE(add(make_elf<Elf32_Ehdr, Elf32_Phdr>(ELFCLASS32, EM_386, kTwo)));
  EXPECT_EQ(at(0x3010), (Bytes{0x90, 0xc3}));
}

TEST_F(ElfCode, OfAnotherProcessorIsRefused) {
  EXPECT_THAT(why(add(elf64(kTwo, EM_AARCH64))), HasSubstr("another processor"));
}

TEST_F(ElfCode, WithoutAnExecutableSegmentIsRefused) {
  EXPECT_THAT(why(add(elf64({{0x1000, PF_R, {1, 2, 3}}}))), HasSubstr("no executable segment"));
}

TEST_F(ElfCode, CutAnywhereIsAnErrorAndNeverACrash) {
  Bytes whole = elf64(kTwo);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    Result<void> added =
        add(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_FALSE(added) << size;
    EXPECT_EQ(added.error().code, ErrorCode::kBadInput) << size;
  }
}

TEST_F(ElfCode, WhoseSegmentLiesBeyondTheFileIsCutShort) {
  Bytes file = elf64(kTwo);
  Elf64_Phdr program;
  std::size_t second = sizeof(Elf64_Ehdr) + sizeof program;
  for (std::uint64_t offset : {std::uint64_t{1} << 40, ~std::uint64_t{0}, file.size() - 1}) {
    std::memcpy(&program, file.data() + second, sizeof program);
    program.p_offset = offset;
    std::memcpy(file.data() + second, &program, sizeof program);
    EXPECT_THAT(why(add(file)), HasSubstr("cut short")) << offset;
  }
}

TEST_F(ElfCode, ThatWrapsAroundTheAddressSpaceIsRefused) {
  EXPECT_FALSE(add(elf64(kTwo), Address{~std::uint64_t{0} - 0x2010}));
}

TEST_F(ElfCode, IsToldFromOtherFiles) {
  EXPECT_TRUE(is_elf(elf64(kTwo)));
  EXPECT_FALSE(is_elf(Bytes{0x7f, 'E', 'L'}));
  EXPECT_THAT(why(add(Bytes{'#', '!', '/'})), HasSubstr("no ELF file"));
}

TEST_F(ElfCode, ThatIsNotThereIsAnErrorOfTheSystem) {
  Result<void> added = add_elf_code(image_, folder_.file("missing"), {});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kSystem);
}

}  // namespace
}  // namespace tailtrace
