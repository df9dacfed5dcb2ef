#include "decoder/bundle/bundle.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "decoder/history/history.h"
#include "decoder/symbols/mapping.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

ToyRun toy_run(int tid) {
  ToyRun run = ToyProgram(static_cast<std::uint64_t>(tid), 4, 6).run(7, 2000, true);
  run.snapshot->thread = {40, tid};
  run.snapshot->first = {100};
  return run;
}

TEST(Bundle, HasCopiesOfFilesWhoseNamesAreNoUtf8) {
  TempFolder folder;
  const std::string library = folder.file("caf\xe9.so");
  std::ofstream(library) << "code";
  auto writer = BundleWriter::create(folder.file("run.tt"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add_module({"/caf\xe9/caf\xe9.so", "", ""}, library));
  ASSERT_TRUE(
      writer->add(*toy_run(40).snapshot, "1000-2000 r-xp 00000000 00:00 0 /caf\xe9/caf\xe9.so\n"));
  ASSERT_TRUE(writer->finish());
  auto bundle = read_bundle(folder.file("run.tt"));
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  auto loaded = load_thread(bundle->threads.at(0));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  const std::vector<Mapping> mappings = parse_maps(loaded->maps);
  ASSERT_EQ(mappings.size(), 1u);
  EXPECT_TRUE(mappings[0].path.starts_with(folder.path())) << mappings[0].path;
  EXPECT_TRUE(fs::exists(mappings[0].path));
}

// A bundle of two threads.
std::string save_two(const TempFolder& folder) {
  std::string path = folder.file("run.tt");
  auto writer = BundleWriter::create(path);
  EXPECT_TRUE(writer);
  for (int tid : {40, 41}) EXPECT_TRUE(writer->add(*toy_run(tid).snapshot, "the maps"));
  EXPECT_TRUE(writer->finish());
  return path;
}

unsigned mode_of(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(Bundle, ReadsAsWhatWasSaved) {
  TempFolder folder;
  std::string path = save_two(folder);
  EXPECT_TRUE(is_bundle(path));
  auto bundle = read_bundle(path);
  ASSERT_TRUE(bundle) << bundle.error().to_string();
  ASSERT_EQ(bundle->threads.size(), 2u);
  for (const BundleThread& thread : bundle->threads) {
    ToyRun run = toy_run(thread.thread.tid);
    EXPECT_EQ(thread.engine, "toy");
    auto loaded = load_thread(thread);
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    EXPECT_TRUE(loaded->problems.empty());
    EXPECT_EQ(loaded->maps, "the maps");
    EXPECT_EQ(loaded->snapshot->records, run.snapshot->records);
    EXPECT_EQ(loaded->snapshot->first.value, 100u);
    EXPECT_EQ(loaded->snapshot->complete, run.snapshot->complete);
    History saved(loaded->snapshot);
    History first(run.snapshot);
    EXPECT_EQ(saved.size(), first.size());
    EXPECT_EQ(saved.gaps(), first.gaps());
    EXPECT_EQ(first_position(thread)->value, 100u);
  }
}

TEST(Bundle, RecordsLieInTheirFileOneBehindTheOther) {
  TempFolder folder;
  auto bundle = read_bundle(save_two(folder));
  ToyRun run = toy_run(40);
  std::ifstream file(bundle->threads[0].records_path, std::ios::binary);
  std::vector<BranchRecord> read(run.snapshot->records.size());
  auto size = static_cast<std::streamsize>(read.size() * sizeof(BranchRecord));
  file.read(reinterpret_cast<char*>(read.data()), size);
  EXPECT_EQ(file.gcount(), size);
  EXPECT_EQ(read, run.snapshot->records);
  EXPECT_EQ(file.get(), EOF);
  auto mapped = map_records(bundle->threads[0]);
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(std::equal(mapped->records.begin(), mapped->records.end(), read.begin(), read.end()));
}

TEST(Bundle, IsForItsUserAlone) {
  TempFolder folder;
  std::string path = save_two(folder);
  EXPECT_EQ(mode_of(path), 0700u);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    EXPECT_EQ(mode_of(entry.path()), 0600u) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 8);
}

// Each file in turn is a link to what it was, then its folder is.
TEST(Bundle, DoesNotFollowLinksOutOfItsFolder) {
  TempFolder folder;
  const std::string path = save_two(folder);
  auto read_whole = [&]() -> Result<void> {
    auto bundle = read_bundle(path);
    if (!bundle) return fail(bundle.error());
    for (const BundleThread& thread : bundle->threads)
      if (auto opened = open_thread(thread); !opened) return fail(opened.error());
    return {};
  };
  for (const char* name : {"bundle.json", "1.records", "2.stream"}) {
    ASSERT_TRUE(read_whole());
    fs::rename(path + "/" + name, folder.file(name));
    fs::create_symlink(folder.file(name), path + "/" + name);
    auto read = read_whole();
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
    EXPECT_NE(read.error().what.find(name), std::string::npos) << read.error().what;
    EXPECT_NE(read.error().why.find("symbolic link"), std::string::npos) << read.error().why;
    EXPECT_FALSE(first_position(BundleThread{{}, "", 0, "", path + "/2.stream"}) &&
                 std::string(name) == "2.stream");
    fs::rename(folder.file(name), path + "/" + name);
  }
}

TEST(Bundle, HasNoCopiesOfModulesBehindLinks) {
  TempFolder folder;
  const std::string path = folder.file("run.tt");
  auto writer = BundleWriter::create(path);
  ASSERT_TRUE(writer && writer->add(*toy_run(40).snapshot, "the maps"));
  BundleAbout about;
  about.modules = {{"/bin/x", "", "modules/1/x"}};
  about.core = "core";
  writer->describe(about);
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(read_bundle(path));
  fs::create_symlink("/usr", path + "/modules");
  EXPECT_FALSE(read_bundle(path));
  fs::remove(path + "/modules");
  fs::create_symlink("/proc/self/mem", path + "/core");
  EXPECT_FALSE(read_bundle(path));
}

TEST(Bundle, DoesNotTouchWhatIsThere) {
  TempFolder folder;
  std::string path = save_two(folder);
  auto writer = BundleWriter::create(path);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().why, "something is there already");
  EXPECT_TRUE(read_bundle(path));
}

TEST(Bundle, LeavesNothingBehindWhenItIsNotFinished) {
  TempFolder folder;
  {
    auto writer = BundleWriter::create(folder.file("run.tt"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add(*toy_run(40).snapshot, ""));
  }
  {
    auto writer = BundleWriter::create(folder.file("run.tt"));
    ASSERT_TRUE(writer);
    EXPECT_EQ(writer->finish().error().why, "no thread is recorded");
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// As one that is killed would leave it: nobody takes it away, nor has it locked any longer.
std::string killed_writers_folder(const std::string& path) {
  auto writer = BundleWriter::create(path);
  EXPECT_TRUE(writer && writer->add(*toy_run(40).snapshot, ""));
  const std::string copy = path + ".unfinished.killed";
  fs::copy(writer->folder(), copy);
  return copy;
}

TEST(Bundle, IsSavedWhereAnotherWriterWasKilled) {
  TempFolder folder;
  const std::string left = killed_writers_folder(folder.file("run.tt"));
  save_two(folder);  // it may be somebody's who is about to lock it
  EXPECT_TRUE(fs::exists(left));
  fs::remove_all(folder.file("run.tt"));
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  save_two(folder);
  EXPECT_FALSE(fs::exists(left));
}

TEST(Bundle, IsSavedBesideWhatIsSomebodyElses) {
  TempFolder folder;
  auto at_work = BundleWriter::create(folder.file("run.tt"));
  ASSERT_TRUE(at_work);
  for (std::string name : {"run.tt.part", "run.tt.unfinished", "run.tt.unfinished.of-mine"}) {
    fs::create_directory(folder.file(name));
    std::ofstream(folder.file(name + "/1.stream.part")) << "theirs";
    fs::last_write_time(folder.file(name),
                        fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  fs::last_write_time(at_work->folder(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  save_two(folder);
  EXPECT_TRUE(fs::exists(at_work->folder()));
  for (std::string name : {"run.tt.part", "run.tt.unfinished", "run.tt.unfinished.of-mine"})
    EXPECT_EQ(fs::file_size(folder.file(name + "/1.stream.part")), 6u) << name;
}

TEST(Bundle, DoesNotTouchWhatCameThereMeanwhile) {
  TempFolder folder;
  const std::string path = folder.file("run.tt");
  {
    auto writer = BundleWriter::create(path);
    ASSERT_TRUE(writer && writer->add(*toy_run(40).snapshot, ""));
    fs::create_directory(path);
    auto finished = writer->finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().why, "something is there already");
    EXPECT_EQ(finished.error().fix, "choose another name, or remove it");
  }
  EXPECT_TRUE(fs::is_empty(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(Bundle, AThreadIsOpenedInPlaceAndAsFarBackAsIsWanted) {
  TempFolder folder;
  auto bundle = read_bundle(save_two(folder));
  const BundleThread& thread = bundle->threads[1];
  ToyRun run = toy_run(thread.thread.tid);
  auto all = open_thread(thread);
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(all->maps, "the maps");
  EXPECT_EQ(History(all->frame, all->source, {}).snapshot().records, run.snapshot->records);
  auto newest = open_thread(thread, 10);
  ASSERT_TRUE(newest);
  std::vector<BranchRecord> last(run.snapshot->records.end() - 10, run.snapshot->records.end());
  EXPECT_EQ(History(newest->frame, newest->source, {}).snapshot().records, last);
  EXPECT_EQ(newest->frame.first.value, 100 + run.snapshot->records.size() - 10);
}

TEST(Bundle, SaysWhenItCannotBeWritten) {
  TempFolder folder;
  const Error error = BundleWriter::create(folder.file("no/such/run.tt")).error();
  EXPECT_EQ(error.why, "No such file or directory");
  EXPECT_EQ(error.fix, "name a place in a folder that is there and can be written to");
  EXPECT_EQ(BundleWriter::create("").error().why, "it has no name");
}

TEST(Bundle, AThreadCutShortIsAnErrorOfThatThreadAlone) {
  TempFolder folder;
  auto bundle = read_bundle(save_two(folder));
  fs::resize_file(bundle->threads[0].records_path, 33);
  auto cut = load_thread(bundle->threads[0]);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().why.find("it has 33 bytes in place of "), std::string::npos);
  EXPECT_TRUE(load_thread(bundle->threads[1]));
  fs::remove(bundle->threads[1].stream_path);
  EXPECT_FALSE(load_thread(bundle->threads[1]));
}

TEST(Bundle, AnotherThreadsStreamIsRefused) {
  TempFolder folder;
  auto bundle = read_bundle(save_two(folder));
  fs::copy_file(bundle->threads[0].stream_path, bundle->threads[1].stream_path,
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(load_thread(bundle->threads[1]).error().why,
            "it is of another thread than the bundle says");
}

TEST(Bundle, AFolderThatIsNoneIsRefused) {
  TempFolder folder;
  EXPECT_FALSE(is_bundle(folder.path()));
  EXPECT_EQ(read_bundle(folder.path()).error().why, "No such file or directory");
}

struct BadText {
  const char* text;
  const char* why;
};

class BadBundle : public testing::TestWithParam<BadText> {};

TEST_P(BadBundle, IsRefused) {
  auto bundle = parse_bundle(GetParam().text, "x.tt");
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(bundle.error().why, GetParam().why);
}

#define TAILTRACE_V1 R"({"schema":"tailtrace.bundle/1","threads":)"
INSTANTIATE_TEST_SUITE_P(
    Bundle, BadBundle,
    testing::Values(
        BadText{"", "bundle.json is no JSON object"},
        BadText{"[]", "bundle.json is no JSON object"}, BadText{"{}", "it has no schema"},
        BadText{R"({"schema":"tailtrace.bundle/9"})",
                "it is of the version \"tailtrace.bundle/9\""},
        BadText{R"({"schema":"tailtrace.bundle/1"})", "it has no list of threads"},
        BadText{TAILTRACE_V1 "[]}", "it has no thread"},
        BadText{TAILTRACE_V1 "[3]}", "thread 1 in bundle.json: it is no object"},
        BadText{TAILTRACE_V1 "[{\"file\":\"../../etc/passwd\"}]}",
                "thread 1 in bundle.json: it has no file number"},
        BadText{TAILTRACE_V1 "[{\"file\":1,\"pid\":-1}]}",
                "thread 1 in bundle.json: it has no pid"},
        BadText{TAILTRACE_V1 "[{\"file\":1,\"pid\":1,\"tid\":1e99}]}",
                "thread 1 in bundle.json: it has no tid"},
        BadText{TAILTRACE_V1 "[{\"file\":1,\"pid\":1,\"tid\":1,\"records\":1099511627777}]}",
                "thread 1 in bundle.json: it has no number of records"},
        BadText{TAILTRACE_V1 "[{\"file\":1,\"pid\":1,\"tid\":1,\"records\":1},{\"file\":1}]}",
                "thread 2 in bundle.json: file 1 is another thread's"}));

}  // namespace
}  // namespace tailtrace
