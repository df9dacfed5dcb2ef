#include "decoder/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesWhatItOwnsAndOnlyThat) {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    UniqueFd first(fd);
    UniqueFd second(std::move(first));
    EXPECT_FALSE(first);  // NOLINT: what a moved one holds is its contract
    EXPECT_EQ(second.get(), fd);
    EXPECT_TRUE(is_open(fd));
  }
  EXPECT_FALSE(is_open(fd));
  UniqueFd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int released = other.release();
  EXPECT_FALSE(other);
  EXPECT_TRUE(is_open(released));
  ::close(released);
}

TEST(MappedFile, ShowsTheFileAndWhatOthersWriteIntoIt) {
  TempFolder folder;
  std::ofstream(folder.file("f")) << "hello";
  auto file = MappedFile::open(folder.file("f"));
  ASSERT_TRUE(file);
  EXPECT_EQ(as_text(file->bytes()), "hello");
  UniqueFd fd(::open(folder.file("f").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), "J", 1, 0), 1);
  EXPECT_EQ(as_text(file->bytes()), "Jello");
  MappedFile moved = std::move(*file);
  EXPECT_EQ(as_text(moved.bytes()), "Jello");
}

// Kilobytes of the process that are in memory, of files or not.
long resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      long size_kb = -1;
      status >> size_kb;
      return size_kb;
    }
  return -1;
}

TEST(MappedFile, TakesNoMemoryForLargeHoles) {
  constexpr std::size_t kSize_bytes = 1u << 30, kMiddle = (kSize_bytes >> 1) + 12345;
  TempFolder folder;
  {
    UniqueFd fd(::open(folder.file("f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(fd.get(), kSize_bytes), 0);
    ASSERT_EQ(::pwrite(fd.get(), "abc", 3, 0), 3);
    ASSERT_EQ(::pwrite(fd.get(), "def", 3, kMiddle), 3);
    ASSERT_EQ(::pwrite(fd.get(), "g", 1, kSize_bytes - 1), 1);
  }
  auto file = MappedFile::open_finished(folder.file("f"));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->bytes().size(), kSize_bytes);
  const long before_kb = resident_kb();
  ASSERT_GT(before_kb, 0);
  unsigned sum = 0;
  for (std::size_t at = 0; at < kSize_bytes; at += 1024) sum += file->bytes()[at];
  EXPECT_EQ(sum, unsigned{'a'});
#ifndef __SANITIZE_THREAD__  // it notes who read what, which takes memory
  EXPECT_LT(resident_kb() - before_kb, 128 * 1024);
#endif
  EXPECT_EQ(as_text(file->bytes().first(3)), "abc");
  EXPECT_EQ(as_text(file->bytes().subspan(kMiddle, 3)), "def");
  EXPECT_EQ(file->bytes()[kMiddle + 3], 0);
  EXPECT_EQ(file->bytes().back(), 'g');
}

TEST(MappedFile, RefusesWhatCannotBeMapped) {
  TempFolder folder;
  std::ofstream(folder.file("empty"));
  ASSERT_EQ(::mkfifo(folder.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::open(folder.file("none")).error().code, ErrorCode::kSystem);
  EXPECT_EQ(MappedFile::open(folder.file("empty")).error().why, "it is empty");
  EXPECT_EQ(MappedFile::open(folder.path()).error().why, "it is not a regular file");
  EXPECT_EQ(MappedFile::open(folder.file("fifo")).error().why, "it is not a regular file");
}

TEST(ReadFile, ReadsAllOrSaysWhy) {
  TempFolder folder;
  std::string text(200000, 'x');
  std::ofstream(folder.file("f")) << text;
  EXPECT_EQ(as_text(*read_file(folder.file("f"), text.size())), text);
  auto large = read_file(folder.file("f"), text.size() - 1);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(large.error().why, "it is larger than 199999 bytes");
  EXPECT_EQ(read_file(folder.file("none"), 1).error().why, "No such file or directory");
  EXPECT_FALSE(read_file(folder.path(), 1));
  // Files that say they are empty and are not.
  EXPECT_GT(read_file("/proc/self/maps", 1 << 24)->size(), 100u);
}

}  // namespace
}  // namespace tailtrace
