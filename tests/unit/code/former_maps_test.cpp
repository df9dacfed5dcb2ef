#include "decoder/code/former_maps.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

const std::string kProgram = "1000-2000 r-xp 00000000 fe:01 7    /bin/program\n";

std::string code_of(std::string_view range, std::string_view inode, std::string_view path) {
  return std::string(range) + " r-xp 00001000 fe:01 " + std::string(inode) + "    " +
         std::string(path) + "\n";
}

const std::string kFirst = code_of("10000-12000", "1", "/lib/first.so");
const std::string kSecond = code_of("11000-13000", "2", "/lib/second.so");

TEST(FormerMaps, KeepWhatIsGone) {
  FormerMaps former;
  EXPECT_TRUE(former.see(kProgram + kFirst, {1}).empty());
  EXPECT_EQ(former.text(), "");
  EXPECT_TRUE(former.see(kProgram, {1}).empty());
  EXPECT_EQ(former.text(), "was - " + kFirst);
  EXPECT_TRUE(former.see(kProgram, {1}).empty());
  EXPECT_EQ(former.text(), "was - " + kFirst);
}

TEST(FormerMaps, SayFromWhenOnOtherCodeIsThere) {
  FormerMaps former;
  (void)former.see(kFirst, {1});
  (void)former.see("", {1});
  const auto ranges = former.see(kSecond, {1});
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].begin, Address{0x11000});
  EXPECT_EQ(ranges[0].end, Address{0x12000});
  EXPECT_EQ(former.text(), "was 1 " + kFirst);
  // In one look: gone, and replaced.
  EXPECT_EQ(former.see(kFirst, {2}).size(), 1u);
  EXPECT_EQ(former.text(), "was 2 " + kSecond + "was 1 " + kFirst);
  (void)former.see("", {3});
  EXPECT_EQ(former.text(), "was - " + kFirst + "was 2 " + kSecond + "was 1 " + kFirst);
}

TEST(FormerMaps, TakeWhatIsBackForWhatItWas) {
  FormerMaps former;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(former.see(kFirst, {1}).empty());
    EXPECT_EQ(former.text(), "");
    EXPECT_TRUE(former.see("", {1}).empty());
  }
  // Elsewhere it is another one, which takes no place.
  EXPECT_TRUE(former.see(code_of("20000-22000", "1", "/lib/first.so"), {1}).empty());
  EXPECT_EQ(former.text(), "was - " + kFirst);
}

TEST(FormerMaps, TellFilesOfOnePathApart) {
  const std::string rebuilt = code_of("10000-12000", "3", "/lib/first.so");
  FormerMaps former;
  (void)former.see(kFirst, {1});
  EXPECT_EQ(former.see(rebuilt, {1}).size(), 1u);
  std::string deleted = kFirst;
  deleted.insert(deleted.size() - 1, " (deleted)");
  EXPECT_EQ(former.text(), "was 1 " + deleted);
}

TEST(FormerMaps, HaveNoneThatIsDeletedAndStillThere) {
  std::string deleted = kFirst;
  deleted.insert(deleted.size() - 1, " (deleted)");
  FormerMaps former;
  (void)former.see(kFirst, {1});
  EXPECT_TRUE(former.see(deleted, {1}).empty());
  EXPECT_EQ(former.text(), "");
  EXPECT_TRUE(former.see("", {1}).empty());
  EXPECT_EQ(former.text(), "was - " + deleted);
}

TEST(FormerMaps, LeaveOutWhatNeverHadCode) {
  const std::string data = "30000-31000 r--p 00000000 fe:01 9    /usr/share/data\n";
  const std::string read_only = "f000-10000 r--p 00000000 fe:01 1    /lib/first.so\n";
  FormerMaps former;
  (void)former.see(read_only + kFirst + data, {1});
  (void)former.see("", {1});
  EXPECT_EQ(former.text(), "was - " + read_only + "was - " + kFirst);
  EXPECT_TRUE(former.see("10000-12000 r--p 00000000 fe:01 9    /usr/share/data\n", {1}).empty());
}

TEST(FormerMaps, OfCodeThatWasMadeWritableForAWhileAreNone) {
  std::string writable = kFirst;
  writable.replace(writable.find("r-xp"), 4, "rw-p");
  FormerMaps former;
  (void)former.see(kFirst, {1});
  (void)former.see(writable, {1});
  EXPECT_EQ(former.text(), "");
  EXPECT_TRUE(former.see(kFirst, {1}).empty());
}

TEST(FormerMaps, GoByWhatWasExecutedWhereMapsDoNotTell) {
  const std::string first = "10000-12000 r--p 00000000 fe:01 1    /lib/first.so\n";
  const std::string data = "11000-13000 r--p 00000000 fe:01 9    /usr/share/data\n";
  bool was_executed = true;
  FormerMaps former([&](FormerMaps::Range) { return was_executed; });
  (void)former.see(first, {1});
  EXPECT_EQ(former.see(data, {1}).size(), 1u);
  was_executed = false;
  EXPECT_TRUE(former.see(first, {2}).empty());
  EXPECT_EQ(former.text(), "was 1 " + first);
}

TEST(FormerMaps, AreBounded) {
  FormerMaps former;
  const std::string path(4000, 'x');
  for (std::uint64_t i = 1; i < 400; ++i) {
    (void)former.see(code_of("10000-12000", std::to_string(i), "/" + path), {1});
    (void)former.see("", {1});
  }
  EXPECT_LE(former.text().size(), FormerMaps::kMaxText_bytes);
  EXPECT_GT(former.text().size(), FormerMaps::kMaxText_bytes / 2);
  EXPECT_EQ(former.text().find(" 399 "), former.text().find("fe:01 ") + 5);
}

TEST(FormerMaps, AreTakenOutOfAMap) {
  std::string maps = kProgram + "was 1 " + kFirst + kSecond + "was - " + kSecond;
  EXPECT_EQ(take_former_maps(maps), "was 1 " + kFirst + "was - " + kSecond);
  EXPECT_EQ(maps, kProgram + kSecond);
  EXPECT_EQ(take_former_maps(maps), "");
  EXPECT_EQ(maps, kProgram + kSecond);
}

TEST(FormerMaps, HaveOtherEpochs) {
  const std::string text = "was 3 " + kFirst + "was - " + kSecond + "no line\nwas 1 " + kSecond;
  const std::string moved = with_epochs(text, [](std::optional<Epoch>& until, std::string_view) {
    if (until) until->value += 10;
    return until != Epoch{11};
  });
  EXPECT_EQ(moved, "was 13 " + kFirst + "was - " + kSecond);
}

}  // namespace
}  // namespace tailtrace
