// Code by time: what was mapped between two looks at a process, in the order that the kernel told.
#include "plugin/engines/perf/process_code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "decoder/base/file.h"
#include "decoder/symbols/mapping.h"
#include "tests/support/temp_folder.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kPage_bytes = 4096;
constexpr Address kNowhere{0x300000000};  // nothing is mapped there in this process

// Two pages of executable memory of this process, as generated code has them.
class Generated {
 public:
  Generated()
      : at_(::mmap(nullptr, 2 * kPage_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Generated() { ::munmap(at_, 2 * kPage_bytes); }
  Address address() const { return {reinterpret_cast<std::uint64_t>(at_)}; }
  void fill(std::uint8_t byte, std::size_t page = 0) {
    std::memset(static_cast<std::uint8_t*>(at_) + page * kPage_bytes, byte, kPage_bytes);
  }
  MapChange told(std::uint64_t time, std::size_t page = 0) const {
    MapChange change;
    change.time = time;
    change.map.address = address() + page * kPage_bytes;
    change.map.size_bytes = kPage_bytes;
    change.map.path = "//anon";
    return change;
  }

 private:
  void* at_;
};

class CodeByTime : public testing::Test {
 protected:
  CodeByTime() : code_(::getpid()) { EXPECT_TRUE(code_.update({}, 10)); }

  MapChange file(std::uint64_t time, char fill, const std::string& name) {
    const std::string path = folder_.file(name);
    std::ofstream(path) << std::string(kPage_bytes, fill);
    struct stat found {};
    EXPECT_EQ(::stat(path.c_str(), &found), 0);
    MapChange change;
    change.time = time;
    change.map.address = kNowhere;
    change.map.size_bytes = kPage_bytes;
    change.map.inode = found.st_ino;
    change.map.path = path;
    return change;
  }
  // What is known at an address in an epoch; 0 nothing.
  int byte(Address at, std::uint32_t epoch) const {
    ByteSpan bytes = code_.image()->at(at, 1, {epoch});
    return bytes.empty() ? 0 : bytes[0];
  }
  void look(std::vector<MapChange> told, std::uint64_t now) {
    auto updated = code_.update(std::move(told), now);
    ASSERT_TRUE(updated) << updated.error().to_string();
  }

  TempFolder folder_;
  ProcessCode code_;
};

TEST_F(CodeByTime, CodeThatComesWhereNoneWasBeginsNoEpoch) {
  look({file(20, 'a', "a")}, 30);
  EXPECT_TRUE(code_.begins().empty());
  EXPECT_EQ(byte(kNowhere, 0), 'a');
}

TEST_F(CodeByTime, FilesAtOnePlaceEachBeginOneAtTheirTime) {
  look({file(20, 'a', "a"), file(22, 'b', "b"), file(24, 'a', "again")}, 30);
  ASSERT_EQ(code_.begins().size(), 2u);
  EXPECT_EQ(code_.begins()[0].time, 22u);
  EXPECT_EQ(code_.begins()[1].time, 24u);
  EXPECT_EQ(byte(kNowhere, 0), 'a');
  EXPECT_EQ(byte(kNowhere, 1), 'b');
  EXPECT_EQ(byte(kNowhere, 2), 'a');
  look({file(40, 'a', "a third")}, 50);
  EXPECT_EQ(code_.begins().size(), 3u) << "the same code, of another file";
  EXPECT_EQ(byte(kNowhere, 3), 'a');
  look({file(60, 'a', "a third")}, 70);
  EXPECT_EQ(code_.begins().size(), 3u) << "the same file again";
}

// The files that were at a place, and until when.
TEST_F(CodeByTime, FilesThatAreGoneKeepTheirNames) {
  look({file(20, 'a', "a"), file(22, 'b', "b")}, 30);
  auto former = parse_former_maps(code_.former_maps());
  ASSERT_EQ(former.size(), 2u);
  EXPECT_EQ(former[0].mappings[0].path, folder_.file("b"));
  EXPECT_EQ(former[0].until, std::nullopt) << "it was unmapped";
  EXPECT_EQ(former[1].mappings[0].path, folder_.file("a"));
  EXPECT_EQ(former[1].until, Epoch{1});
  EXPECT_EQ(former[1].find(kNowhere), &former[1].mappings[0]);
  look({file(40, 'c', "c")}, 50);
  former = parse_former_maps(code_.former_maps());
  ASSERT_EQ(former.size(), 3u);
  EXPECT_EQ(former[0].mappings[0].path, folder_.file("c"));
  EXPECT_EQ(former[1].until, Epoch{2});
  EXPECT_EQ(code_.of_child(0x7ffffffe).former_maps(), code_.former_maps());
}

TEST_F(CodeByTime, FilesThatAreReallyMappedAreTheOnesThatWereTold) {
  MapChange told = file(20, 'a', "a");
  UniqueFd fd(::open(told.map.path.c_str(), O_RDONLY | O_CLOEXEC));
  void* at = ::mmap(nullptr, kPage_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0);
  told.map.address = {reinterpret_cast<std::uint64_t>(at)};
  look({told}, 30);
  EXPECT_EQ(code_.former_maps(), "");
  look({}, 40);
  EXPECT_EQ(code_.former_maps(), "");
  // Nobody tells of what goes, nor that other code came.
  ASSERT_EQ(::mmap(at, kPage_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0),
            at);
  look({}, 50);
  const auto former = parse_former_maps(code_.former_maps());
  ASSERT_EQ(former.size(), 1u);
  EXPECT_EQ(former[0].mappings[0].path, told.map.path);
  EXPECT_EQ(former[0].until, Epoch{1});
  ASSERT_EQ(code_.begins().size(), 1u);
  EXPECT_EQ(code_.begins()[0].time, 40u);
  ::munmap(at, kPage_bytes);
  look({}, 60);
  EXPECT_EQ(parse_former_maps(code_.former_maps()).size(), 1u);
}

TEST_F(CodeByTime, ThreadsThatTellInTurnsAreOneOrder) {
  look({file(24, 'c', "c"), file(20, 'a', "a"), file(22, 'b', "b")}, 30);
  EXPECT_EQ(byte(kNowhere, 0), 'a');
  EXPECT_EQ(byte(kNowhere, 1), 'b');
  EXPECT_EQ(byte(kNowhere, 2), 'c');
}

TEST_F(CodeByTime, AFileThatIsGoneLeavesNothingAndWhatComesNextIsNotTakenForIt) {
  MapChange gone = file(22, 'b', "b");
  ::unlink(gone.map.path.c_str());
  look({file(20, 'a', "a"), gone, file(24, 'c', "c")}, 30);
  EXPECT_EQ(byte(kNowhere, 0), 'a');
  EXPECT_EQ(byte(kNowhere, 1), 0);
  EXPECT_EQ(byte(kNowhere, 2), 'c');
  gone.map.address = kNowhere + (1 << 20);
  gone.time = 40;
  MapChange later = file(42, 'd', "d");
  later.map.address = gone.map.address;
  look({gone}, 41);
  look({later}, 50);
  ASSERT_EQ(code_.begins().size(), 3u);
  EXPECT_EQ(code_.begins()[2].time, 42u);
  EXPECT_EQ(byte(gone.map.address, 2), 0);
  EXPECT_EQ(byte(gone.map.address, 3), 'd');
}

TEST_F(CodeByTime, AnotherFileByThatNameIsNotBelieved) {
  MapChange replaced = file(20, 'a', "a");
  std::ofstream(folder_.file("new")) << std::string(kPage_bytes, 'x');
  ASSERT_EQ(::rename(folder_.file("new").c_str(), replaced.map.path.c_str()), 0);
  MapChange other_build = file(21, 'b', "b");
  other_build.map.build_id = {1, 2, 3};
  other_build.map.address = kNowhere + (1 << 20);
  look({replaced, other_build}, 30);
  EXPECT_EQ(byte(kNowhere, 0), 0);
  EXPECT_EQ(byte(other_build.map.address, 0), 0);
}

TEST_F(CodeByTime, GeneratedCodeIsKnownFromItsLastMappingOn) {
  Generated generated;
  generated.fill('a');
  look({generated.told(20)}, 30);
  EXPECT_EQ(byte(generated.address(), 0), 'a');
  generated.fill('c');
  look({generated.told(40), generated.told(42)}, 50);
  ASSERT_EQ(code_.begins().size(), 2u);
  EXPECT_EQ(code_.begins()[0].time, 40u);
  EXPECT_EQ(code_.begins()[1].time, 42u);
  EXPECT_EQ(byte(generated.address(), 0), 'a');
  EXPECT_EQ(byte(generated.address(), 1), 0) << "nobody saw what it was then";
  EXPECT_EQ(byte(generated.address(), 2), 'c');
}

TEST_F(CodeByTime, NeighboursInOneRegionHaveEachTheirTime) {
  Generated generated;
  generated.fill('a');
  generated.fill('b', 1);
  look({}, 30);
  generated.fill('c');
  generated.fill('d', 1);
  look({generated.told(40), generated.told(42, 1)}, 50);
  ASSERT_EQ(code_.begins().size(), 2u);
  const Address second = generated.address() + kPage_bytes;
  EXPECT_EQ(byte(generated.address(), 0), 'a');
  EXPECT_EQ(byte(generated.address(), 1), 'c');
  EXPECT_EQ(byte(second, 1), 'b');
  EXPECT_EQ(byte(second, 2), 'd');
}

TEST_F(CodeByTime, ChangesThatNobodyToldOfDateFromTheLastLook) {
  Generated generated;
  generated.fill('a');
  look({generated.told(20)}, 30);
  generated.fill('b');
  look({}, 50);
  ASSERT_EQ(code_.begins().size(), 1u);
  EXPECT_EQ(code_.begins()[0].time, 30u);
  EXPECT_EQ(byte(generated.address(), 0), 'a');
  EXPECT_EQ(byte(generated.address(), 1), 'b');
}

TEST_F(CodeByTime, AChildBeginsWithItsParentsCode) {
  look({file(20, 'a', "a")}, 30);
  constexpr std::int32_t kNobody = 0x7ffffffe;
  ProcessCode child = code_.of_child(kNobody);
  ASSERT_TRUE(child.update({file(40, 'b', "b")}, 50));
  EXPECT_EQ(child.image()->at(kNowhere, 1, {0})[0], 'a');
  EXPECT_EQ(child.image()->at(kNowhere, 1, {1})[0], 'b');
  EXPECT_EQ(byte(kNowhere, 1), 'a') << "the parent's is its own";
  EXPECT_EQ(child.update({}, 60).error().code, ErrorCode::kGone);
}

}  // namespace
}  // namespace tailtrace::perf
