#include "decoder/symbols/deleted_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "decoder/base/file.h"
#include "decoder/symbols/elf_file.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

// A library that this process maps as code.
class MappedLibrary {
 public:
  explicit MappedLibrary(int fd)
      : at_(::mmap(nullptr, kSize_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0)) {}
  MappedLibrary(const MappedLibrary&) = delete;
  ~MappedLibrary() { ::munmap(at_, kSize_bytes); }

  static constexpr std::size_t kSize_bytes = 4096;
  Address at() const { return {reinterpret_cast<std::uint64_t>(at_)}; }

 private:
  void* at_;
};

UniqueFd open_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::string own_maps_now() { return process_maps(::getpid()).value_or(""); }

std::vector<DeletedFile> own_deleted(std::string_view path) {
  std::vector<DeletedFile> found = deleted_files(::getpid(), own_maps_now());
  std::erase_if(found, [&](const DeletedFile& file) { return file.path != path; });
  return found;
}

std::string build_id_at(const std::string& path) {
  auto file = ElfFile::open(path);
  return file ? file->build_id() : "";
}

class DeletedFiles : public testing::Test {
 protected:
  DeletedFiles() { fs::copy_file("/bin/true", path_); }

  const TempFolder folder_;
  const std::string path_ = folder_.file("a library");
};

TEST_F(DeletedFiles, AreThereAsLongAsTheyAreOpen) {
  UniqueFd file = open_file(path_);
  const MappedLibrary mapped(file.get());
  EXPECT_TRUE(own_deleted(path_ + " (deleted)").empty());
  fs::remove(path_);
  const auto found = own_deleted(path_ + " (deleted)");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(build_id_at(found.front().at), build_id_at("/bin/true"));
}

TEST_F(DeletedFiles, AreThereAsLongAsTheyAreMapped) {
  const MappedLibrary mapped(open_file(path_).get());
  fs::remove(path_);
  if (::access("/proc/self/map_files", X_OK) != 0 || ::geteuid() != 0)
    GTEST_SKIP() << "the kernel gives such files to root only";
  EXPECT_EQ(own_deleted(path_ + " (deleted)").size(), 1u);
}

TEST_F(DeletedFiles, OfOnePathAreToldApart) {
  UniqueFd first = open_file(path_);
  const MappedLibrary old(first.get());
  fs::remove(path_);
  fs::copy_file("/bin/false", path_);
  UniqueFd second = open_file(path_);
  const MappedLibrary newer(second.get());
  fs::remove(path_);
  ASSERT_EQ(own_deleted(path_ + " (deleted)").size(), 2u);
  std::string seen;
  for (const Mapping& mapping : mappings_of(::getpid(), own_maps_now()))
    for (Address at : {old.at(), newer.at()})
      if (mapping.begin == at) {
        EXPECT_EQ(mapping.path, path_);
        EXPECT_TRUE(mapping.has_file());
        EXPECT_EQ(build_id_at(mapping.file()),
                  build_id_at(at == old.at() ? "/bin/true" : "/bin/false"));
        seen += at == old.at() ? "old " : "new ";
      }
  EXPECT_EQ(seen.size(), 8u) << seen;
}

TEST_F(DeletedFiles, MemoryThatHoldsAProgramIsOne) {
  UniqueFd memory(::memfd_create("program", MFD_CLOEXEC));
  auto bytes = read_file("/bin/true", 1 << 20);
  ASSERT_TRUE(bytes && write_all(memory.get(), *bytes, "memory"));
  const MappedLibrary mapped(memory.get());
  EXPECT_EQ(own_deleted("/memfd:program (deleted)").size(), 1u);
  // What a compiler generates is none.
  UniqueFd other(::memfd_create("generated", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(other.get(), MappedLibrary::kSize_bytes), 0);
  const MappedLibrary generated(other.get());
  EXPECT_TRUE(own_deleted("/memfd:generated (deleted)").empty());
}

TEST_F(DeletedFiles, OfAnotherProcessAreNotTaken) {
  UniqueFd file = open_file(path_);
  const MappedLibrary mapped(file.get());
  fs::remove(path_);
  const std::string maps = own_maps_now();
  EXPECT_TRUE(deleted_files(1, maps).empty());
  EXPECT_TRUE(deleted_files(0, maps).empty());
  EXPECT_EQ(mappings_of(0, maps), parse_maps(maps));
}

TEST_F(DeletedFiles, AreMarkedInWhatWasKnownBefore) {
  UniqueFd file = open_file(path_);
  const MappedLibrary mapped(file.get());
  const std::string before = own_maps_now();
  EXPECT_EQ(mark_deleted(::getpid(), before), before);
  fs::remove(path_);
  const std::string marked = mark_deleted(::getpid(), before);
  EXPECT_NE(marked.find(path_ + " (deleted)\n"), marked.npos);
  EXPECT_EQ(deleted_files(::getpid(), marked).size(), 1u);
}

}  // namespace
}  // namespace tailtrace
