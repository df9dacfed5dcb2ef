#include "decoder/base/own_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

OwnFolder make_in(const TempFolder& place) { return *OwnFolder::make(place.path(), "kind"); }

void make_old(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST(OwnFolder, IsPrivateAndGoesAwayWithWhatIsInIt) {
  TempFolder place;
  std::string path;
  {
    OwnFolder folder = make_in(place);
    path = folder.path();
    EXPECT_TRUE(path.starts_with(place.file("kind.")));
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::ofstream(path + "/file") << "text";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(OwnFolder, StaysWhenItIsKept) {
  TempFolder place;
  std::string path;
  {
    OwnFolder folder = make_in(place);
    folder.keep();
    path = folder.path();
  }
  EXPECT_TRUE(fs::exists(path));
}

TEST(OwnFolder, TakesAwayWhatKilledOnesLeftBehindAndNothingElse) {
  TempFolder place;
  OwnFolder used = make_in(place);
  for (const char* name : {"kind.killed", "kind.recent", "kind.somebodys", "other.killed", "kind"})
    fs::create_directory(place.file(name));
  fs::create_directory_symlink(place.file("other.killed"), place.file("kind.link"));
  std::ofstream(place.file("kind.killed") + "/ring") << "records";
  std::ofstream(place.file("kind.file")) << "text";
  for (const std::string& path :
       {used.path(), place.file("kind.killed"), place.file("other.killed"), place.file("kind"),
        place.file("kind.somebodys"), place.file("kind.file")})
    make_old(path);
  OwnFolder next = make_in(place);
  EXPECT_FALSE(fs::exists(place.file("kind.killed")));
  for (const std::string& path :
       {used.path(), place.file("kind.recent"), place.file("kind.somebodys"),
        place.file("other.killed"), place.file("kind"), place.file("kind.link"),
        place.file("kind.file"), next.path()})
    EXPECT_TRUE(fs::exists(path)) << path;
}

TEST(NewParents, GoAwayWhileTheyAreEmpty) {
  TempFolder place;
  fs::create_directory(place.file("old"));
  const std::string path = place.file("old/a/b//c");
  { const NewParents made(path); }
  EXPECT_TRUE(fs::is_empty(place.file("old")));
  {
    const NewParents made(path);
    EXPECT_TRUE(fs::is_empty(place.file("old/a/b")));
    EXPECT_FALSE(fs::exists(path));
    std::ofstream(place.file("old/a/file")) << "another's";
  }
  EXPECT_FALSE(fs::exists(place.file("old/a/b")));
  EXPECT_TRUE(fs::exists(place.file("old/a/file")));
}

TEST(NewParents, AreKeptOrGoWithTheFolderBelowThem) {
  TempFolder place;
  for (const bool kept : {false, true}) {
    NewParents parents(place.file("a/b"));
    ASSERT_TRUE(fs::create_directory(place.file("a/b")));
    OwnFolder folder(place.file("a/b"), std::move(parents));
    if (kept) folder.keep();
    folder = OwnFolder(std::move(folder));
    EXPECT_TRUE(fs::exists(place.file("a/b")));
    folder = OwnFolder("");
    EXPECT_EQ(fs::exists(place.file("a")), kept);
  }
}

TEST(OwnFolder, ThatCannotBeMadeIsAnError) {
  TempFolder place;
  auto folder = OwnFolder::make(place.file("missing"), "kind");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().what, "cannot make a folder in " + place.file("missing"));
}

}  // namespace
}  // namespace tailtrace
