// The code of files that were executed, where there is nothing to be read in their place by now.
#include "decoder/symbols/file_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

TEST(FileCode, WhatIsNoFileOrEmptyIsTold) {
  TempFolder folder;
  const std::string empty = folder.file("empty");
  std::ofstream(empty).close();
  const std::vector<Mapping> mappings = {{{0x1000}, {0x2000}, 0, true, empty},
                                         {{0x3000}, {0x4000}, 0, true, folder.path()}};
  FileCode files;
  CodeImage image;
  EXPECT_TRUE(files.add_to(image, mappings).empty());
  ASSERT_EQ(files.problems().size(), 2u);
  EXPECT_EQ(files.problems()[0].what, "cannot read the code of " + empty);
  EXPECT_EQ(files.problems()[0].why, "it is empty");
  EXPECT_EQ(files.problems()[1].why, "it is not a regular file");
}

}  // namespace
}  // namespace tailtrace
