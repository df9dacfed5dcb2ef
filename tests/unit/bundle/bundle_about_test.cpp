#include "decoder/bundle/bundle_about.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "decoder/bundle/bundle.h"
#include "decoder/symbols/elf_file.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

constexpr char kMaps[] =
    "1000-2000 r-xp 00000000 08:01 7   /bin/program with words\n"
    "3000-4000 r-xp 00000000 08:01 8   /lib/one.so\n"
    "5000-6000 rw-p 00000000 00:00 0   [heap]\n";

BundleAbout about_of_a_crash() {
  BundleAbout about;
  about.cause = "SIGSEGV";
  about.signal = 11;
  about.thread = {40, 41};
  about.command = "/bin/program \"a\" \xff";
  about.clocks = {{1, 2, 3}, {~0ull, 5, 6}};
  about.modules = {{"/bin/program with words", "00ff", "modules/1/program with words"},
                   {"/lib/one.so", "", ""}};
  about.core = "core";
  about.threads[{40, 41}] = {
      "worker", {{"rax", 0}, {"rip", 0xffffffffffffffff}}, {{0x401136}, {~0ull}}};
  return about;
}

TEST(BundleAbout, ReadsAsItWasSaved) {
  TempFolder folder;
  auto writer = BundleWriter::create(folder.file("run.tt"));
  ASSERT_TRUE(writer);
  ToyRun run = ToyProgram(1, 4, 6).run(7, 2000, true);
  run.snapshot->thread = {40, 41};
  ASSERT_TRUE(writer->add(*run.snapshot, kMaps));
  writer->describe(about_of_a_crash());
  ASSERT_TRUE(writer->finish());
  auto bundle = read_bundle(folder.file("run.tt"));
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  BundleAbout expected = about_of_a_crash();
  expected.command = "/bin/program \"a\" \xef\xbf\xbd";  // JSON is UTF-8
  EXPECT_EQ(*bundle->about, expected);
  auto loaded = load_thread(bundle->threads.front());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->maps, "1000-2000 r-xp 00000000 08:01 7   " + folder.file("run.tt") +
                              "/modules/1/program with words\n" +
                              std::string(kMaps).substr(std::string(kMaps).find("3000")));
}

// The program that runs this has another build id than any other one.
TEST(BundleAbout, TakesNoNamesFromFilesOfAnotherBuild) {
  const std::string self = std::filesystem::canonical("/proc/self/exe").string();
  auto file = ElfFile::open(self);
  ASSERT_TRUE(file);
  ASSERT_FALSE(file->build_id().empty());
  BundleAbout about;
  about.modules = {{self, file->build_id(), ""},
                   {self, "00ff", ""},
                   {self, "00ff", "modules/1/x"},
                   {self, "", ""},
                   {"/nowhere/at/all", "00ff", ""}};
  compare_build_ids(about);
  for (std::size_t i = 0; i < about.modules.size(); ++i)
    EXPECT_EQ(about.modules[i].other_build_id, i == 1 ? file->build_id() : "") << i;
  auto problems = other_modules(about);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].why.find(file->build_id() + " here, and had 00ff"), std::string::npos);
  about.modules = {about.modules[1]};
  const std::string line = "1000-2000 r-xp 00000000 08:01 7   ";
  EXPECT_EQ(maps_to_copies(line + self, about.modules, "/b"),
            line + "another build: " + self + "\n");
}

TEST(BundleAbout, SaysOfAThreadThatItsNamesAreOfAnotherBuild) {
  TempFolder folder;
  const std::string self = std::filesystem::canonical("/proc/self/exe").string();
  auto writer = BundleWriter::create(folder.file("run.tt"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(*ToyProgram(1, 4, 6).run(7, 200, false).snapshot, kMaps));
  BundleAbout about;
  about.modules = {{self, "00ff", ""}};
  writer->describe(about);
  ASSERT_TRUE(writer->finish());
  auto bundle = read_bundle(folder.file("run.tt"));
  ASSERT_TRUE(bundle);
  auto opened = open_thread(bundle->threads.front());
  ASSERT_TRUE(opened);
  ASSERT_EQ(opened->problems.size(), 1u);
  EXPECT_NE(opened->problems[0].what.find("not those that were executed"), std::string::npos);
}

// A bundle may come from anywhere.
TEST(BundleAbout, LeavesOutWhatIsNotAsItShouldBe) {
  const char* json = R"({"schema":"tailtrace.bundle/1",
    "recorded":{"cause":7,"signal":4294967296,"pid":-1,"tid":"x","clocks":[1,{"tsc":-1}]},
    "modules":[{"path":"/a","file":"../../etc/passwd"},{"path":"/b","file":"/etc/passwd"},
               {"path":"/c","file":"a/../../x"},{"path":"/d","file":"..a/b"},3],
    "core":"../core",
    "threads":[{"file":1,"pid":1,"tid":1,"engine":"e","records":1,
                "registers":{"rip":"0xzz","rax":5,"rbx":"0x10"},"name":[],
                "stack":["0x10",7,"0xzz"]}]})";
  auto bundle = parse_bundle(json, "/somewhere");
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  const BundleAbout& about = *bundle->about;
  EXPECT_EQ(about.cause, "");
  EXPECT_EQ(about.signal, 0);
  EXPECT_EQ(about.thread.tid, 0);
  ASSERT_EQ(about.clocks.size(), 1u);
  EXPECT_EQ(about.clocks[0].tsc, 0u);
  ASSERT_EQ(about.modules.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(about.modules[i].copy, "") << i;
  EXPECT_EQ(about.modules[3].copy, "..a/b");
  EXPECT_EQ(about.core, "");
  const BundleThreadState& state = about.threads.at({1, 1});
  EXPECT_EQ(state.name, "");
  EXPECT_EQ(state.registers, (std::vector<std::pair<std::string, std::uint64_t>>{
                                 {"rax", 0}, {"rbx", 16}, {"rip", 0}}));
  EXPECT_EQ(state.stack, (std::vector<Address>{{16}, {0}, {0}}));
}

}  // namespace
}  // namespace tailtrace
