#include "plugin/server/qemu/library_list.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <map>

namespace tailtrace {
namespace {

// A program's memory: what is put there, and nothing between.
class Memory {
 public:
  template <class T>
  void put(std::uint64_t address, const T& value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    put_bytes(address, ByteSpan(bytes, sizeof value));
  }
  void put_text(std::uint64_t address, std::string_view text) {
    put_bytes(address, as_bytes(text));
    put<char>(address + text.size(), '\0');
  }
  ReadGuest reader() const {
    return [this](Address address, std::span<std::uint8_t> out) {
      std::size_t n = 0;
      for (; n < out.size(); ++n) {
        auto byte = bytes_.find(address.value + n);
        if (byte == bytes_.end()) break;
        out[n] = byte->second;
      }
      return n;
    };
  }

 private:
  void put_bytes(std::uint64_t address, ByteSpan bytes) {
    for (std::uint8_t byte : bytes) bytes_[address++] = byte;
  }
  std::map<std::uint64_t, std::uint8_t> bytes_;
};

template <class T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

constexpr std::uint64_t kBase = 0x400000, kDynamic = 0x403000, kDebug = 0x7000, kStrings = 0x9000;

// A position-independent program at kBase whose dynamic linker's structure is at kDebug.
struct Program {
  Memory memory;
  Bytes auxv;

  Program() {
    auxiliary(AT_PHDR, kBase + 64);
    auxiliary(AT_PHNUM, 2);
    auxiliary(AT_NULL, 0);
    Elf64_Phdr segment{};
    segment.p_type = PT_PHDR;
    segment.p_vaddr = 64;
    memory.put(kBase + 64, segment);
    segment.p_type = PT_DYNAMIC;
    segment.p_vaddr = kDynamic - kBase;
    memory.put(kBase + 64 + sizeof segment, segment);
    dynamic(0, DT_NEEDED, 1);
    dynamic(1, DT_DEBUG, kDebug);
    dynamic(2, DT_NULL, 0);
    put_debug(kDebug, 1, 0x8000);
    put_library(0x8000, {}, 0x8100);
    put_library(0x8100, "/lib/a<b>&\"c\".so", 0x8200);
    put_library(0x8200, "/lib/libc.so.6", 0);
  }
  void auxiliary(std::uint64_t type, std::uint64_t value) {
    for (std::uint64_t word : {type, value})
      for (int i = 0; i < 8; ++i) auxv.push_back(static_cast<std::uint8_t>(word >> 8 * i));
  }
  void dynamic(int i, Elf64_Sxword tag, std::uint64_t value) {
    memory.put(kDynamic + i * sizeof(Elf64_Dyn), Elf64_Dyn{tag, {value}});
  }
  void put_debug(std::uint64_t at, int version, std::uint64_t first) {
    r_debug debug{};
    debug.r_version = version;
    debug.r_map = pointer<link_map>(first);
    memory.put(at, debug);
  }
  void put_library(std::uint64_t at, std::string_view name, std::uint64_t next) {
    const std::uint64_t text = kStrings + at;
    memory.put_text(text, name);
    link_map library{};
    library.l_addr = at << 12;
    library.l_name = pointer<char>(text);
    library.l_ld = pointer<Elf64_Dyn>(at + 1);
    library.l_next = pointer<link_map>(next);
    memory.put(at, library);
  }
  std::optional<std::string> list() const {
    auto list = loaded_libraries(auxv, memory.reader());
    return list ? std::optional(library_document(*list)) : std::nullopt;
  }
};

TEST(LibraryList, HasAllButTheProgramItself) {
  EXPECT_EQ(Program().list(),
            "<library-list-svr4 version=\"1.0\" main-lm=\"0x8000\">"
            "<library name=\"/lib/a&#60;b&#62;&#38;&#34;c&#34;.so\" lm=\"0x8100\" "
            "l_addr=\"0x8100000\" l_ld=\"0x8101\" lmid=\"0x7000\"/>"
            "<library name=\"/lib/libc.so.6\" lm=\"0x8200\" l_addr=\"0x8200000\" l_ld=\"0x8201\" "
            "lmid=\"0x7000\"/></library-list-svr4>");
}

TEST(LibraryList, HasThoseOfOtherNamespaces) {
  Program program;
  program.put_debug(kDebug, 2, 0x8200);
  program.memory.put<std::uint64_t>(kDebug + sizeof(r_debug), 0x7800);
  program.put_debug(0x7800, 2, 0x8300);
  program.memory.put<std::uint64_t>(0x7800 + sizeof(r_debug), 0);
  program.put_library(0x8300, "/lib/other.so", 0);
  EXPECT_EQ(program.list(),
            "<library-list-svr4 version=\"1.0\" main-lm=\"0x8200\">"
            "<library name=\"/lib/libc.so.6\" lm=\"0x8200\" l_addr=\"0x8200000\" l_ld=\"0x8201\" "
            "lmid=\"0x7000\"/>"
            "<library name=\"/lib/other.so\" lm=\"0x8300\" l_addr=\"0x8300000\" l_ld=\"0x8301\" "
            "lmid=\"0x7800\"/></library-list-svr4>");
}

TEST(LibraryList, IsNothingBeforeTheDynamicLinkerRanAndWithoutOne) {
  Program program;
  program.dynamic(1, DT_DEBUG, 0);
  EXPECT_EQ(program.list(), std::nullopt);
  program.dynamic(1, DT_NULL, 0);
  EXPECT_EQ(program.list(), std::nullopt);
  EXPECT_FALSE(loaded_libraries({}, program.memory.reader()));
}

TEST(LibraryList, OfAListThatIsARingEnds) {
  Program program;
  program.put_library(0x8200, "x", 0x8100);
  EXPECT_TRUE(program.list().has_value());
}

}  // namespace
}  // namespace tailtrace
