// Where a file was loaded, by its segments and the mappings that a process has of it.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {
namespace {

constexpr std::uint64_t kBase = 0x555555554000;

// A program of some bytes, as lld links it: all of it lies in one page of the file.
const std::vector<ElfSegment> kTiny = {{0, 0, 0x67c, false},
                                       {0x1680, 0x680, 0x200, true},
                                       {0x2880, 0x880, 0x1d8, false},
                                       {0x3a58, 0xa58, 0x38, false}};
// As rustc has lld link one: the first page of each segment but the first has the end of another.
const std::vector<ElfSegment> kLarger = {{0, 0, 0x1306c, false},
                                         {0x14070, 0x13070, 0x3d7c0, true},
                                         {0x52830, 0x50830, 0x27c0, false},
                                         {0x55ff0, 0x52ff0, 0x9c0, false}};

Mapping at(std::uint64_t begin, std::uint64_t end, std::uint64_t file_offset_bytes,
           bool executable = false, const char* path = "/program") {
  return {{kBase + begin}, {kBase + end}, file_offset_bytes, executable, path};
}

const std::vector<Mapping> kTinyMappings = {at(0, 0x1000, 0), at(0x1000, 0x2000, 0, true),
                                            at(0x2000, 0x3000, 0), at(0x3000, 0x4000, 0)};
const std::vector<Mapping> kLargerMappings = {
    at(0, 0x14000, 0), at(0x14000, 0x52000, 0x13000, true), at(0x52000, 0x55000, 0x50000),
    at(0x55000, 0x57000, 0x52000)};

void expect_base(const std::vector<ElfSegment>& segments, const std::vector<Mapping>& mappings,
                 std::uint64_t base = kBase) {
  for (const Mapping& mapping : mappings)
    EXPECT_EQ(load_bias(segments, mappings, mapping), base) << mapping.begin.value;
}

TEST(LoadBias, OfSegmentsThatShareAPageOfTheFileIsTheSameForAll) {
  expect_base(kTiny, kTinyMappings);
  expect_base(kLarger, kLargerMappings);
}

// Under qemu no mapping is executable.
TEST(LoadBias, NeedsNoMappingThatIsExecutable) {
  for (auto [segments, mappings] :
       {std::pair(kTiny, kTinyMappings), std::pair(kLarger, kLargerMappings)}) {
    for (Mapping& mapping : mappings) mapping.executable = false;
    expect_base(segments, mappings);
  }
}

// As perf tells of them.
TEST(LoadBias, IsKnownByTheExecutableMappingAlone) {
  expect_base(kTiny, {kTinyMappings[1]});
  expect_base(kLarger, {kLargerMappings[1]});
}

TEST(LoadBias, OfPartsWithOtherAccessIsTheSegments) {
  expect_base(kLarger, {at(0, 0x14000, 0), at(0x14000, 0x20000, 0x13000, true),
                        at(0x20000, 0x21000, 0x1f000), at(0x21000, 0x52000, 0x20000, true),
                        at(0x52000, 0x54000, 0x50000), at(0x54000, 0x55000, 0x52000),
                        at(0x55000, 0x57000, 0x52000)});
}

TEST(LoadBias, OfAFileThatIsLoadedTwiceIsEachPlaces) {
  std::vector<Mapping> mappings = kLargerMappings;
  constexpr std::uint64_t kSecond = 0x57000;
  for (Mapping mapping : kLargerMappings) {
    mapping.begin.value += kSecond;
    mapping.end.value += kSecond;
    mappings.push_back(mapping);
  }
  for (std::size_t i = 0; i < mappings.size(); ++i)
    EXPECT_EQ(load_bias(kLarger, mappings, mappings[i]), i < 4 ? kBase : kBase + kSecond) << i;
}

TEST(LoadBias, LooksAtTheMappingsOfTheFileOnly) {
  std::vector<Mapping> mappings = {at(0, 0x1000, 0, false, "/other"), at(0x1000, 0x2000, 0, true),
                                   at(0x2000, 0x3000, 0, false, "/other")};
  EXPECT_EQ(load_bias(kTiny, mappings, mappings[1]), kBase);
}

TEST(LoadBias, OfWhatNoSegmentHoldsIsUnknown) {
  const std::vector<Mapping> mappings = {at(0, 0x1000, 0x99000, true)};
  EXPECT_FALSE(load_bias(kTiny, mappings, mappings[0]));
  EXPECT_FALSE(load_bias({}, mappings, mappings[0]));
}

}  // namespace
}  // namespace tailtrace
