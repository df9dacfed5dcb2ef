#include "plugin/server/recording/code_in_memory.h"

#include <gtest/gtest.h>

#include <map>

namespace tailtrace {
namespace {

// A program's pages; those that are not there cannot be read.
using Pages = std::map<Address, Bytes>;

ReadMemory reader_of(const Pages& pages) {
  return [&pages](Address address, std::span<std::uint8_t> out) -> std::size_t {
    auto page = pages.find(address);
    if (page == pages.end()) return 0;
    std::ranges::copy(page->second, out.begin());
    return out.size();
  };
}

// Runs [begin, last] for each pair.
ThreadSnapshot ran(std::shared_ptr<const CodeImage> code,
                   std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> runs) {
  ThreadSnapshot snapshot;
  snapshot.code = std::move(code);
  BranchRecord jump;
  jump.kind = RecordKind::kJump;
  snapshot.records.push_back(jump);
  for (auto [begin, last] : runs) {
    snapshot.records.back().to = {begin};
    jump.from = {last};
    snapshot.records.push_back(jump);
  }
  return snapshot;
}

Bytes known_bytes(const CodeImage& code, Address address, std::size_t size_bytes) {
  Bytes bytes(size_bytes);
  bytes.resize(code.read(address, bytes, code.newest()));
  return bytes;
}

TEST(CodeInMemory, IsTheSameImageWhereNothingChanged) {
  Pages pages{{{0x1000}, Bytes(4096, 0x90)}, {{0x2000}, Bytes(4096, 0x90)}};
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add({0x1f00}, Bytes(0x200, 0x90)));
  ThreadSnapshot seen = with_code_in_memory(ran(code, {{0x1ff0, 0x2010}}), reader_of(pages));
  EXPECT_EQ(seen.code, code);
}

TEST(CodeInMemory, HasOtherBytesAndMissingPagesInANewEpochOfWhatRan) {
  Pages pages{{{0x1000}, Bytes(4096, 0x90)}};
  pages[{0x1000}][0x801] = 0xcc;
  pages[{0x1000}][0x900] = 0xcc;  // did not run
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add({0x1000}, Bytes(0x2000, 0x90), {3}));
  ThreadSnapshot seen = with_code_in_memory(
      ran(code, {{0x2000, 0x2001}, {0x1800, 0x1803}, {0x1800, 0x1803}}), reader_of(pages));
  EXPECT_EQ(seen.code->newest(), Epoch{4});
  EXPECT_EQ(known_bytes(*seen.code, {0x1800}, 4), (Bytes{0x90, 0xcc, 0x90, 0x90}));
  EXPECT_EQ(known_bytes(*seen.code, {0x1900}, 1), (Bytes{0x90}));
  EXPECT_EQ(known_bytes(*seen.code, {0x2000}, 1), Bytes{});
  EXPECT_FALSE(seen.code->same({0x2000}, {0x2001}, {3}, {4}));
  EXPECT_FALSE(seen.code->same({0x1800}, {0x1802}, {3}, {4}));
  EXPECT_TRUE(seen.code->same({0x1802}, {0x1900}, {3}, {4}));
}

TEST(CodeInMemory, RunsThatCannotBeAreNotLookedAt) {
  auto code = std::make_shared<CodeImage>();
  ASSERT_TRUE(code->add({0x1000}, Bytes(0x1000, 0x90)));
  Pages none;
  ThreadSnapshot seen = with_code_in_memory(
      ran(code, {{0x1800, 0x1000}, {0, 0x1000}, {0x1800, ~0ull - 3}}), reader_of(none));
  EXPECT_EQ(seen.code, code);
}

}  // namespace
}  // namespace tailtrace
