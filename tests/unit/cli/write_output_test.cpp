#include "plugin/cli/write_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr rlim_t kSmall_bytes = 4096;

// As a full disk: no file can grow beyond that.
class SmallFiles {
 public:
  SmallFiles() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{kSmall_bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

// From here on this thread's file systems have no files without names.
void refuse_unnamed_files() {
  constexpr std::uint32_t kUnnamed = O_TMPFILE & ~O_DIRECTORY;
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kUnnamed, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

class WriteOutputTo : public testing::Test {
 protected:
  Result<void> write(OlderFile older, std::string_view text) {
    return write_output(path_, older, [&](std::FILE* file) {
      put_text(file, text);
      return Result<void>();
    });
  }
  std::string contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Beside what the test made nothing is left.
  long files() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  }

  TempFolder folder_;
  std::string path_ = folder_.file("out");
};

TEST_F(WriteOutputTo, IsItsUsersOnly) {
  ASSERT_TRUE(write(OlderFile::kStays, "text"));
  EXPECT_EQ(contents(), "text");
  struct stat info {};
  ::stat(path_.c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteOutputTo, AnOlderFileStaysOrIsReplaced) {
  std::ofstream(path_) << "older";
  auto refused = write(OlderFile::kStays, "newer");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(refused.error().why, "something is there already");
  EXPECT_EQ(contents(), "older");
  ASSERT_TRUE(write(OlderFile::kIsReplaced, "newer"));
  EXPECT_EQ(contents(), "newer");
}

TEST_F(WriteOutputTo, OfAFullDiskIsRemovedAndTheOlderFileIsWhole) {
  // What fails is found out while it is written, or when it is closed.
  for (const std::size_t size_bytes : {std::size_t{1} << 20, std::size_t{kSmall_bytes} + 1}) {
    std::filesystem::remove(path_);
    const SmallFiles small;
    auto failed = write(OlderFile::kStays, std::string(size_bytes, 'x'));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().what, "cannot write " + path_);
    EXPECT_EQ(failed.error().why, "File too large");
    EXPECT_EQ(files(), 0);
    ASSERT_TRUE(write(OlderFile::kStays, "older"));
    EXPECT_FALSE(write(OlderFile::kIsReplaced, std::string(size_bytes, 'x')));
    EXPECT_EQ(contents(), "older");
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(WriteOutputTo, OfWhatFailedOtherwiseIsRemoved) {
  auto failed = write_output(path_, OlderFile::kStays, [](std::FILE* file) -> Result<void> {
    put_text(file, "half");
    return fail(ErrorCode::kBadInput, "cannot go on");
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "cannot go on");
  EXPECT_EQ(files(), 0);
  auto throws = [](std::FILE*) -> Result<void> { throw std::runtime_error("no memory"); };
  EXPECT_THROW((void)write_output(path_, OlderFile::kStays, throws), std::runtime_error);
  EXPECT_EQ(files(), 0);
}

TEST_F(WriteOutputTo, LeavesNothingWhenItIsKilled) {
  const pid_t child = ::fork();
  if (child == 0)
    (void)write_output(path_, OlderFile::kStays, [](std::FILE* file) -> Result<void> {
      put_text(file, std::string(1 << 20, 'x'));
      ::kill(::getpid(), SIGKILL);
      return {};
    });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(files(), 0);
}

TEST_F(WriteOutputTo, OtherFilesBesideItStay) {
  for (const char* name : {"out.part", "out.tmp", "out~"}) std::ofstream(folder_.file(name)) << "x";
  for (const OlderFile older : {OlderFile::kStays, OlderFile::kIsReplaced})
    ASSERT_TRUE(write(older, "text"));
  EXPECT_EQ(files(), 4);
  for (const char* name : {"out.part", "out.tmp", "out~"})
    EXPECT_EQ(std::filesystem::file_size(folder_.file(name)), 1u) << name;
}

TEST_F(WriteOutputTo, AFileThatCameMeanwhileStays) {
  auto refused = write_output(path_, OlderFile::kStays, [&](std::FILE* file) -> Result<void> {
    put_text(file, "text");
    std::ofstream(path_) << "another's";
    return {};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(refused.error().why, "something is there already");
  EXPECT_EQ(contents(), "another's");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteOutputTo, FileSystemsHoldNoUnnamedFilesEverywhere) {
  std::thread([&] {
    refuse_unnamed_files();
    ASSERT_LT(::open(folder_.path().c_str(), O_WRONLY | O_TMPFILE, 0600), 0);
    ASSERT_TRUE(write(OlderFile::kStays, "older"));
    ASSERT_TRUE(write(OlderFile::kIsReplaced, "newer"));
    EXPECT_EQ(contents(), "newer");
    auto failed = write_output(path_, OlderFile::kIsReplaced, [&](std::FILE*) -> Result<void> {
      EXPECT_EQ(files(), 2);
      return fail(ErrorCode::kBadInput, "cannot go on");
    });
    EXPECT_FALSE(failed);
    EXPECT_EQ(files(), 1);
  }).join();
}

TEST_F(WriteOutputTo, DevicesAndLinksAreWrittenToAsTheyStand) {
  path_ = "/dev/full";
  auto failed = write(OlderFile::kStays, "text");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "cannot write /dev/full");
  EXPECT_EQ(failed.error().why, "No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file(path_));

  std::ofstream(folder_.file("far")) << "older";
  path_ = folder_.file("link");
  std::filesystem::create_symlink("far", path_);
  EXPECT_FALSE(write(OlderFile::kStays, "newer"));
  ASSERT_TRUE(write(OlderFile::kIsReplaced, "newer"));
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(contents(), "newer");
}

TEST_F(WriteOutputTo, OfNoFolderSaysWhy) {
  path_ = folder_.file("none/out");
  auto failed = write(OlderFile::kStays, "text");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "cannot write " + path_);
  EXPECT_EQ(failed.error().why, "No such file or directory");
}

}  // namespace
}  // namespace tailtrace
