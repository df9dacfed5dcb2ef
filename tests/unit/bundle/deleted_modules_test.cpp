// Files that were deleted while they were mapped are in a bundle.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "decoder/base/file.h"
#include "decoder/bundle/bundle.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

// Maps what is then deleted.
class Deleted {
 public:
  Deleted(const std::string& path, const std::string& from) {
    std::filesystem::copy_file(from, path);
    fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    at_ = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd_.get(), 0);
    std::filesystem::remove(path);
  }
  Deleted(const Deleted&) = delete;
  ~Deleted() { ::munmap(at_, 4096); }

  Address at() const { return {reinterpret_cast<std::uint64_t>(at_)}; }
  // Its line in a text of maps.
  std::string path_in(std::string_view maps) const {
    for (const Mapping& mapping : parse_maps(maps))
      if (mapping.begin == at()) return mapping.path;
    return {};
  }

 private:
  UniqueFd fd_;
  void* at_ = nullptr;
};

std::string id_of_file(const std::string& path) {
  auto file = ElfFile::open(path);
  return file ? file->build_id() : "none";
}

TEST(DeletedModules, AreCopiedAndToldApart) {
  TempFolder folder;
  const Deleted first(folder.file("library"), "/bin/true");
  const Deleted second(folder.file("library"), "/bin/false");
  ToyRun run = ToyProgram(1, 4, 6).run(7, 2000, true);
  run.snapshot->records.back().to = first.at();  // something of it is executed
  run.snapshot->thread = {::getpid(), ::getpid()};
  run.snapshot->former_maps =
      "was - 1000-2000 r-xp 00000000 fe:01 1  " + folder.file("library") + " (deleted)\n";
  auto writer = BundleWriter::create(folder.file("run.tt"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(*run.snapshot, process_maps(::getpid()).value_or("")));
  ASSERT_TRUE(writer->finish());
  const Result<Bytes> for_lldb = read_file(folder.file("run.tt/trace.json"), 1 << 20);
  ASSERT_TRUE(for_lldb);
  EXPECT_NE(as_text(*for_lldb).find("\"file\": \"modules/"), std::string_view::npos)
      << as_text(*for_lldb);
  auto bundle = read_bundle(folder.file("run.tt"));
  ASSERT_TRUE(bundle);
  auto loaded = load_thread(bundle->threads.front());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(id_of_file(first.path_in(loaded->maps)), id_of_file("/bin/true"));
  EXPECT_EQ(id_of_file(second.path_in(loaded->maps)), id_of_file("/bin/false"));
  EXPECT_NE(first.path_in(loaded->maps), second.path_in(loaded->maps));
  const auto former = parse_former_maps(loaded->snapshot->former_maps);
  ASSERT_EQ(former.size(), 1u);
  EXPECT_FALSE(former.front().mappings.front().has_file()) << "it is another file";
}

}  // namespace
}  // namespace tailtrace
