#include "decoder/symbols/generated_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "decoder/symbols/jit_dump.h"
#include "decoder/symbols/perf_map.h"
#include "decoder/symbols/process_symbols.h"
#include "tests/support/frame_of.h"
#include "tests/support/jit_files.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

std::string name_at(const GeneratedFunctions& functions, std::uint64_t address) {
  auto cover = functions.cover({address});
  EXPECT_LE(cover.begin.value, address);
  EXPECT_GT(cover.end.value, address);
  return cover.name == nullptr ? "" : *cover.name;
}

// The name of what was at an address in an epoch.
auto names_in(ProcessSymbols& symbols) {
  return [&symbols](std::uint64_t at, std::uint32_t epoch) {
    return symbols.function_in({at}, {epoch}).name;
  };
}

TEST(GeneratedFunctions, HaveTheNameThatCameLast) {
  GeneratedFunctions functions;
  EXPECT_TRUE(functions.add({0x100}, 0x100, "old"));
  EXPECT_TRUE(functions.add({0x140}, 0x20, "new"));
  EXPECT_EQ(name_at(functions, 0xff), "");
  EXPECT_EQ(name_at(functions, 0x13f), "old");
  EXPECT_EQ(name_at(functions, 0x140), "new");
  EXPECT_EQ(name_at(functions, 0x160), "old");
  EXPECT_EQ(functions.cover({0x170}).entry, Address{0x100});
  EXPECT_EQ(name_at(functions, 0x200), "");
  EXPECT_TRUE(functions.add({0x80}, 0x1000, "all"));
  EXPECT_EQ(name_at(functions, 0x150), "all");
}

TEST(GeneratedFunctions, RefuseWhatIsNone) {
  GeneratedFunctions functions;
  EXPECT_FALSE(functions.add({0x100}, 0, "empty"));
  EXPECT_FALSE(functions.add({0x100}, 4, ""));
  EXPECT_FALSE(functions.add({~0ull - 2}, 4, "wraps"));
  EXPECT_FALSE(functions.add({0x100}, ~0ull, "wraps"));
  EXPECT_TRUE(functions.empty());
  EXPECT_TRUE(functions.add({0x100}, 4, std::string(10'000, 'x')));
  EXPECT_EQ(name_at(functions, 0x100).size(), GeneratedFunctions::kMaxName_bytes);
}

// Against a name for each address.
TEST(GeneratedFunctions, AnswerAsATableOfAllAddresses) {
  constexpr std::size_t kAddresses = 200;
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    GeneratedFunctions functions;
    std::vector<std::pair<std::string, std::uint64_t>> table(kAddresses);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t begin = random() % kAddresses;
      const std::uint64_t end = std::min<std::uint64_t>(begin + 1 + random() % 30, kAddresses);
      const std::string name = "f" + std::to_string(i);
      ASSERT_TRUE(functions.add({begin}, end - begin, name));
      for (std::uint64_t at = begin; at < end; ++at) table[at] = {name, begin};
      for (std::uint64_t at = 0; at < kAddresses; ++at) {
        auto cover = functions.cover({at});
        ASSERT_EQ(cover.name == nullptr ? "" : *cover.name, table[at].first);
        if (cover.name == nullptr) continue;
        ASSERT_EQ(cover.entry.value, table[at].second);
        for (std::uint64_t near = cover.begin.value; near < cover.end.value; ++near)
          ASSERT_EQ(table[near], table[at]);
      }
    }
  }
}

TEST(PerfMap, IsReadLineByLine) {
  GeneratedFunctions functions;
  auto added = add_perf_map(
      "1000 10 one\n0x2000 0x20 a::b(int, char)\n\n3000 0 stub\n4000 4 red \33[31m\r\n5000 4 cut",
      "map", functions);
  EXPECT_TRUE(added);
  EXPECT_EQ(name_at(functions, 0x100f), "one");
  EXPECT_EQ(name_at(functions, 0x2000), "a::b(int, char)");
  EXPECT_EQ(name_at(functions, 0x3000), "stub");
  EXPECT_EQ(name_at(functions, 0x3001), "");
  EXPECT_EQ(name_at(functions, 0x4000), "red ?[31m");
  EXPECT_EQ(name_at(functions, 0x5000), "");
}

TEST(PerfMap, TellsOfLinesThatAreNoneAndTakesTheOthers) {
  GeneratedFunctions functions;
  auto added = add_perf_map("1000 10 one\nnonsense\n2000 10\nxyz 10 two\n-1 10 two\n3000 8 three\n",
                            "the map", functions);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().what, "cannot read 4 line(s) of the map");
  EXPECT_NE(added.error().why.find("line 2 "), std::string::npos) << added.error().why;
  EXPECT_EQ(name_at(functions, 0x1000), "one");
  EXPECT_EQ(name_at(functions, 0x3000), "three");
}

TEST(JitDump, TellsWhatWasMadeAndMovedAndWhen) {
  JitFile file;
  file.load(10, 0x1000, "one", {1, 2, 3}, 7);
  file.record(2, 11, Bytes(24));
  file.load(12, 0x2000, "two", {4, 5}, 8);
  file.move(13, 0x1000, 0x3000, 3, 7);
  file.record(99, 14, {});
  file.move(15, 0x3000, 0x4000, 3, 7);
  file.load(15, 0x9000, "no code", {}, 9);
  file.record(3, 16, {});
  file.load(17, 0x5000, "behind the end", {1}, 10);
  auto dump = parse_jit_dump(file.bytes(), "dump");
  ASSERT_TRUE(dump) << dump.error().to_string();
  EXPECT_TRUE(dump->problems.empty());
  EXPECT_EQ(dump->pid, 4211u);
  EXPECT_FALSE(dump->is_tsc);
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string, Bytes>> loads;
  for (const JitLoad& made : dump->loads)
    loads.emplace_back(made.time, made.address.value, made.name,
                       Bytes(made.code.begin(), made.code.end()));
  EXPECT_EQ(loads, (decltype(loads){{10, 0x1000, "one", {1, 2, 3}},
                                    {12, 0x2000, "two", {4, 5}},
                                    {13, 0x3000, "one", {1, 2, 3}},
                                    {15, 0x4000, "one", {1, 2, 3}}}));
}

TEST(JitDump, LeavesOutRecordsThatCannotBe) {
  JitFile file;
  file.load(1, 0x1000, "good", {1, 2, 3}, 1);
  file.record(0, 2, Bytes(39));        // too short
  file.record(0, 3, Bytes(60, 0xff));  // a name without its end
  file.load(4, ~0ull, "wraps", {1, 2}, 2);
  file.load(5, 0x2000, "lies", {1, 2}, 3, 1000);
  file.move(6, 0x1000, 0x3000, 3, 99);  // of nothing
  file.move(7, 0x1001, 0x3000, 3, 1);   // from elsewhere
  file.load(8, 0x5000, "good too", {9}, 4);
  auto dump = parse_jit_dump(file.bytes(), "the dump");
  ASSERT_TRUE(dump);
  ASSERT_EQ(dump->loads.size(), 2u);
  EXPECT_EQ(dump->loads[1].name, "good too");
  ASSERT_EQ(dump->problems.size(), 1u);
  EXPECT_EQ(dump->problems[0].what, "cannot read 6 record(s) of the dump");
}

TEST(JitDump, ReadsWhatIsThereOfAFileThatIsBeingWritten) {
  JitFile file;
  file.load(1, 0x1000, "one", {1, 2, 3}, 1);
  const std::size_t whole_bytes = file.bytes().size();
  file.load(2, 0x2000, "two", {4, 5}, 2);
  for (std::size_t size = whole_bytes; size <= file.bytes().size(); ++size) {
    auto dump = parse_jit_dump(ByteSpan(file.bytes()).first(size), "dump");
    ASSERT_TRUE(dump);
    const bool is_cut = size != whole_bytes && size != file.bytes().size();
    EXPECT_EQ(dump->problems.size(), is_cut ? 1u : 0u) << size;
    EXPECT_EQ(dump->loads.size(), size == file.bytes().size() ? 2u : 1u) << size;
  }
}

TEST(JitDump, SaysWhyAFileIsNone) {
  auto why = [](std::size_t offset, std::uint8_t byte) {
    JitFile file;
    Bytes bytes = file.bytes();
    bytes[offset] = byte;
    auto dump = parse_jit_dump(bytes, "dump");
    return dump ? "" : dump.error().why;
  };
  EXPECT_EQ(why(0, 'X'), "it does not begin as one");
  EXPECT_EQ(why(4, 2), "it is of version 2, and 1 is known");
  EXPECT_EQ(why(8, 39), "its header is too short");
  EXPECT_EQ(why(12, 183), "it is of the ELF machine 183, not of x86-64");
  EXPECT_EQ(parse_jit_dump(Bytes{0x4a, 0x69, 0x54, 0x44}, "dump").error().why, "it is cut short");
}

TEST(JitDump, IsKnownByItsName) {
  EXPECT_TRUE(is_jit_dump_name("/tmp/jit-12.dump"));
  EXPECT_TRUE(is_jit_dump_name("jit-1.dump"));
  for (const char* other : {"/tmp/jit-.dump", "/tmp/jit-x.dump", "jit-1.dumps", "ajit-1.dump", "",
                            "/jit-1.dump/x", "jit-.dum"})
    EXPECT_FALSE(is_jit_dump_name(other)) << other;
}

TEST(GeneratedFiles, AreNotReadThroughLinksOrFromPipes) {
  TempFolder folder;
  std::ofstream(folder.file("file")) << "1000 10 one\n";
  std::filesystem::create_symlink(folder.file("file"), folder.file("link"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(read_generated_file(folder.file("file")));
  EXPECT_FALSE(read_generated_file(folder.file("link")));
  EXPECT_EQ(read_generated_file(folder.file("pipe")).error().why, "it is no regular file");
  EXPECT_FALSE(read_generated_file(folder.file("none")));
  std::filesystem::resize_file(folder.file("file"), kMaxGeneratedFile_bytes + 1);
  EXPECT_NE(read_generated_file(folder.file("file")).error().why.find("more than"),
            std::string::npos);
}

TEST(GeneratedFiles, NameWhatNoFileHasSymbolsOf) {
  TempFolder folder;
  std::ofstream(folder.file("map")) << "1000 10 by_map\n3000 10 hidden\nbad\n";
  JitFile file;
  file.load(1, 0x3000, "_ZN3jit6by_mapEi", {0xc3}, 1);
  const std::string path = folder.file("jit-7.dump");
  file.write(path);
  std::vector<Error> told;
  ProcessSymbols symbols(
      {{{0x2000}, {0x2800}, 0, true, path}, {{0x3000}, {0x3008}, 0, true, "[heap]"}},
      folder.file("map"), [&](const Error& problem) { told.push_back(problem); });
  EXPECT_TRUE(told.empty());
  const Function& by_map = symbols.function_at({0x1004});
  EXPECT_EQ(by_map.name, "by_map");
  EXPECT_EQ(by_map.entry, Address{0x1000});
  EXPECT_EQ(by_map.begin, Address{0x1000});
  EXPECT_EQ(by_map.end, Address{0x1010});
  EXPECT_EQ(by_map.module, "[jit]");
  EXPECT_EQ(symbols.function_at({0x3000}).name, "jit::by_map(int)");
  EXPECT_EQ(symbols.function_at({0x3001}).name, "hidden");
  EXPECT_EQ(symbols.function_at({0x3001}).end, Address{0x3008});
  EXPECT_EQ(symbols.function_at({0x3009}).name, "hidden");
  EXPECT_EQ(symbols.function_at({0x5000}).name, "");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].what.find("cannot read 1 line(s)"), std::string::npos);
}

// Of functions that were made in one place, each has its name for its time.
TEST(GeneratedFiles, NameWhatWasThereThen) {
  TempFolder folder;
  std::ofstream(folder.file("map")) << "3000 4 by_map\n";
  JitFile file;
  file.load(1, 0x3000, "first", {0x90, 0x90, 0xc3}, 1);
  file.load(2, 0x3000, "second", {0x31, 0xc0, 0xc3}, 2);
  file.load(3, 0x3002, "third", {0xcc, 0xcc}, 3);
  const std::string path = folder.file("jit-7.dump");
  file.write(path);
  ProcessSymbols symbols({{{0x2000}, {0x2800}, 0, true, path}}, folder.file("map"));
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x3000}, *from_hex("9090c3")));
  ASSERT_TRUE(image->add({0x3000}, *from_hex("31c0c3"), {1}));
  ASSERT_TRUE(image->add({0x3000}, *from_hex("31c0cc"), {2}));
  ASSERT_TRUE(image->forget({0x3000}, 3, {3}));
  EXPECT_EQ(symbols.function_in({0x3000}, {0}).name, "second");  // the code is not known yet
  symbols.know_history(frame_of(image));
  auto name = names_in(symbols);
  EXPECT_EQ(name(0x3000, 0), "first");
  EXPECT_EQ(name(0x3002, 0), "first");
  EXPECT_EQ(name(0x3000, 1), "second");
  EXPECT_EQ(name(0x3002, 1), "second");
  EXPECT_EQ(name(0x3000, 2), "second");
  EXPECT_EQ(name(0x3002, 2), "third");
  EXPECT_EQ(name(0x3003, 0), "third");  // no other was told to be so long, but one without code
  // Where nothing is known of the code, the newest is as good as any.
  EXPECT_EQ(name(0x3000, 3), "second");
  EXPECT_EQ(name(0x3000, ~0u), "second");
  const Function& first = symbols.function_in({0x3000}, {0});
  EXPECT_EQ(first.entry, Address{0x3000});
  EXPECT_EQ(first.begin, Address{0x3000});
  EXPECT_EQ(first.end, Address{0x3002});  // from there on others were, too
  EXPECT_EQ(&first, &symbols.function_in({0x3001}, {0}));
}

TEST(GeneratedFiles, TellWhatWasReplacedWhereOnlyAPerfMapNamesIt) {
  TempFolder folder;
  std::ofstream(folder.file("map")) << "3000 3 first\n3000 3 second\n"
                                       "4000 3 one\n4000 3 other\n4000 3 newest\n"
                                       "5000 4 patched\n5000 4 later\n"
                                       "6000 3 before\n6000 3 after\n";
  ProcessSymbols symbols({{{0x2000}, {0x2800}, 0, true, "/bin/none"}}, folder.file("map"));
  auto image = std::make_shared<CodeImage>();
  for (std::uint64_t at : {0x3000, 0x4000}) ASSERT_TRUE(image->add({at}, *from_hex("9090c3")));
  ASSERT_TRUE(image->add({0x5000}, *from_hex("31c0ffc3")));
  ASSERT_TRUE(image->add({0x6000}, *from_hex("9090c3")));
  for (std::uint64_t at : {0x3000, 0x4000}) ASSERT_TRUE(image->add({at}, *from_hex("31c0cc"), {1}));
  ASSERT_TRUE(image->add({0x5000}, *from_hex("31c0fec3"), {1}));
  symbols.know_history(frame_of(image));
  auto name = names_in(symbols);
  // Of two, other code than the last is the first one's.
  EXPECT_EQ(name(0x3000, 0), "first");
  EXPECT_EQ(name(0x3002, 0), "first");
  EXPECT_EQ(name(0x3000, 1), "second");
  EXPECT_EQ(symbols.function_in({0x3001}, {0}).entry, Address{0x3000});
  EXPECT_EQ(&symbols.function_in({0x3000}, {0}), &symbols.function_in({0x3002}, {0}));
  // Of three, one of the earlier ones', nobody knows which.
  EXPECT_EQ(name(0x4000, 0), "[replaced by newest]");
  EXPECT_FALSE(symbols.function_in({0x4000}, {0}).known());
  EXPECT_EQ(name(0x4000, 1), "newest");
  // A program that changes a little of its code does not make another function.
  EXPECT_EQ(name(0x5000, 0), "later");
  // Where the later one's code was never met, nothing tells that it was another.
  EXPECT_EQ(name(0x6000, 0), "after");
}

TEST(GeneratedFunctions, OfOnePlaceAreLimited) {
  GeneratedFunctions functions;
  const Bytes code = {1, 2, 3, 4};
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(functions.add({0x1000}, 4, "f" + std::to_string(i), code));
  int compared = 0;
  auto cover = functions.cover({0x1000}, [&](Address, ByteSpan) {
    ++compared;
    return GeneratedFunctions::Likeness{4, 4};
  });
  EXPECT_EQ(*cover.name, "f99");
  EXPECT_EQ(static_cast<std::size_t>(compared), GeneratedFunctions::kMaxInPlace);
}

// A program's own map is found by its number, if it is somebody's to be believed.
TEST(GeneratedFiles, FindThePerfMapOfAProcess) {
  const std::string path = perf_map_path(::getpid());
  std::filesystem::remove(path);  // of an earlier process
  EXPECT_EQ(perf_map_of(::getpid()), "");
  std::ofstream(path) << "1000 10 one\n";
  const std::string found = perf_map_of(::getpid());
  EXPECT_TRUE(found.ends_with(path)) << found;
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  EXPECT_EQ(perf_map_of(::getpid()), "");
  std::filesystem::remove(path);
}

TEST(ProcessSymbols, TellOnceOfFilesThatAreNotThere) {
  std::vector<std::string> told;
  ProcessSymbols symbols({{{0x1000}, {0x2000}, 0, true, "/no/such/file"},
                          {{0x3000}, {0x4000}, 0, true, "deleted: /bin/program"},
                          {{0x5000}, {0x6000}, 0, true, "deleted: /memfd:jit"}},
                         {}, [&](const Error& problem) { told.push_back(problem.what); });
  for (std::uint64_t at : {0x1000, 0x1800, 0x3000, 0x3800, 0x5000, 0x7000})
    EXPECT_FALSE(symbols.function_at({at}).known());
  EXPECT_FALSE(symbols.line_at({0x1004}));
  EXPECT_EQ(told, (std::vector<std::string>{"cannot name the functions of /no/such/file",
                                            "cannot name the functions of /bin/program"}));
}

}  // namespace
}  // namespace tailtrace
