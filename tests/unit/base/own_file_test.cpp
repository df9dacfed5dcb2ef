#include "decoder/base/own_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

TEST(OwnFile, StaysInsideWhateverItsNameTries) {
  using namespace std::string_view_literals;
  for (std::string_view inside : {"", "a", "a/b", "./a", "a//b", "..a", "a..", "a/...", "a/"})
    EXPECT_TRUE(stays_inside(inside)) << inside;
  for (std::string_view outside : {"/"sv, "/a"sv, ".."sv, "../a"sv, "a/.."sv, "a/../b"sv, "a//.."sv,
                                   "./.."sv, "a\0/../b"sv, "a/../../b"sv})
    EXPECT_FALSE(stays_inside(outside)) << outside;
}

TEST(OwnFile, IsNoLinkNorBehindOne) {
  TempFolder folder;
  std::filesystem::create_directories(folder.file("real/deep"));
  std::ofstream(folder.file("real/deep/file")) << "x";
  std::filesystem::create_symlink("real", folder.file("link"));
  std::filesystem::create_symlink("/etc/passwd", folder.file("real/deep/away"));
  std::filesystem::create_symlink("nowhere", folder.file("dangling"));
  for (const char* own : {"", "real/deep/file", "real//deep/./file", "missing", "missing/too"})
    EXPECT_TRUE(check_own_file(folder.path(), own)) << own;
  for (const char* linked : {"link", "link/deep/file", "real/deep/away", "dangling"}) {
    auto checked = check_own_file(folder.path(), linked);
    ASSERT_FALSE(checked) << linked;
    EXPECT_EQ(checked.error().code, ErrorCode::kBadInput);
    EXPECT_NE(checked.error().why.find("symbolic link"), std::string::npos);
  }
}

}  // namespace
}  // namespace tailtrace
