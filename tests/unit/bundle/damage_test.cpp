// Bundles that were damaged: each byte of a small one changed, each file cut short everywhere. An
// error or a history, and nothing worse.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "decoder/base/file.h"
#include "decoder/bundle/bundle.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<ThreadSnapshot> toy_snapshot(std::int32_t tid) {
  ToyRun run = ToyProgram(1, 1, 2).run(3, 30);
  run.snapshot->thread = {40, tid};
  return run.snapshot;
}

std::string save(const TempFolder& folder, std::int32_t threads) {
  std::string path = folder.file("run.tt");
  auto writer = BundleWriter::create(path);
  EXPECT_TRUE(writer);
  std::shared_ptr<ThreadSnapshot> snapshot = toy_snapshot(40);
  for (; snapshot->thread.tid < 40 + threads; ++snapshot->thread.tid)
    EXPECT_TRUE(writer->add(*snapshot, ""));
  EXPECT_TRUE(writer->finish());
  return path;
}

// Reads all there is. False: there is an error, which says what and why, or a problem was told.
bool read_all(const std::string& path) {
  Result<Bundle> bundle = read_bundle(path);
  auto is_error = [](const Error& error) {
    EXPECT_FALSE(error.what.empty());
    EXPECT_FALSE(error.why.empty()) << error.what;
    return false;
  };
  if (!bundle) return is_error(bundle.error());
  bool whole = true;
  for (const BundleThread& thread : bundle->threads) {
    Result<OpenedThread> opened = open_thread(thread);
    if (!opened) return is_error(opened.error());
    whole = whole && opened->problems.empty();
    History history(opened->frame, opened->source, {});
    std::uint64_t items = 0;
    HistoryCursor cursor(history);
    for (cursor.seek_to_oldest(); cursor.valid() && items < 10000; cursor.next()) ++items;
    EXPECT_EQ(items, std::min<std::uint64_t>(history.size(), 10000));
  }
  return whole;
}

// Without those that only LLDB reads.
std::vector<std::string> files_of(const std::string& path) {
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() != ".pt" && entry.path().filename() != "trace.json")
      files.push_back(entry.path().string());
  return files;
}

void write(const std::string& path, ByteSpan bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(DamagedBundle, EachByteMayBeWrong) {
  TempFolder folder;
  std::string path = save(folder, 1);
  ASSERT_TRUE(read_all(path));
  std::size_t refused = 0;
  for (const std::string& file : files_of(path)) {
    Result<Bytes> whole = read_file(file, 1 << 20);
    ASSERT_TRUE(whole);
    for (std::size_t i = 0; i < whole->size(); ++i) {
      Bytes damaged = *whole;
      damaged[i] ^= static_cast<std::uint8_t>(1u << i % 8);
      write(file, damaged);
      refused += !read_all(path);
    }
    write(file, *whole);
  }
  EXPECT_GT(refused, 100u);
  EXPECT_TRUE(read_all(path));
}

TEST(DamagedBundle, EachFileMayEndAnywhere) {
  TempFolder folder;
  std::string path = save(folder, 1);
  for (const std::string& file : files_of(path)) {
    Result<Bytes> whole = read_file(file, 1 << 20);
    ASSERT_TRUE(whole);
    for (std::size_t size = 0; size < whole->size(); ++size) {
      write(file, ByteSpan(*whole).first(size));
      // What ends early is never taken for all of it; but for the last line feed of a text.
      EXPECT_TRUE(!read_all(path) || size + 1 == whole->size()) << file << " of " << size;
    }
    write(file, *whole);
  }
}

}  // namespace
}  // namespace tailtrace
