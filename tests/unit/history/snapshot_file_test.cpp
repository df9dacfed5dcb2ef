#include "decoder/history/snapshot_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "decoder/history/history.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_program.h"

namespace tailtrace {
namespace {

std::string path_in(const TempFolder& folder) { return folder.file("snapshot"); }

// Every item of a history, with its bytes.
std::vector<std::string> items_of(std::shared_ptr<const ThreadSnapshot> snapshot) {
  History history(std::move(snapshot));
  HistoryCursor cursor(history);
  std::vector<std::string> items;
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next()) {
    const HistoryItem& item = cursor.item();
    items.push_back(item.is_gap ? gap_text(item.gap)
                                : std::to_string(item.instruction.address.value) + " " +
                                      to_hex(cursor.bytes()));
  }
  return items;
}

TEST(SnapshotFile, ReadsAsTheSnapshotThatWasSaved) {
  TempFolder folder;
  ToyRun run = ToyProgram(7, 4, 6).run(7, 20000, true);
  run.snapshot->first = {77};
  run.snapshot->thread = {5, 6};
  run.snapshot->former_maps = "was 1 lib\n";
  ASSERT_TRUE(save_snapshot(*run.snapshot, "maps\n", path_in(folder)));
  auto loaded = load_snapshot(path_in(folder));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_TRUE(loaded->problems.empty());
  EXPECT_EQ(loaded->maps, "maps\n");
  EXPECT_EQ(loaded->snapshot->former_maps, "was 1 lib\n");
  EXPECT_EQ(loaded->snapshot->records, run.snapshot->records);
  EXPECT_EQ(loaded->snapshot->first, run.snapshot->first);
  EXPECT_EQ(loaded->snapshot->thread, run.snapshot->thread);
  EXPECT_EQ(loaded->snapshot->engine, "toy");
  EXPECT_TRUE(loaded->snapshot->complete);
  EXPECT_EQ(items_of(loaded->snapshot), items_of(run.snapshot));
}

// Code that changes, goes away and is damaged reads as it did, at each of those times.
TEST(SnapshotFile, KeepsTheCodeOfEveryEpoch) {
  auto image = std::make_shared<CodeImage>();
  ASSERT_TRUE(image->add({0x1000}, *from_hex("90eb00eb0006")));  // nop; jmp 1003; jmp 1005; bad
  ASSERT_TRUE(image->add({0x1001}, *from_hex("ebfd"), {1}));     // jmp 1000
  ASSERT_TRUE(image->forget({0x1000}, 0x10, {2}));
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->code = image;
  BranchRecord change{{0x1000}, {0x1000}, 0, 0, RecordKind::kCodeChange, kFlagAsync, 0};
  snapshot->records = {
      {{}, {0x1000}, 0, 0, RecordKind::kEnable, 0, 0},
      {{0x1001}, {0x1003}, 0, 2, RecordKind::kJump, 0, 0},
      {{0x1003}, {0x1005}, 0, 1, RecordKind::kJump, 0, 0},
      {{0x1005}, {0x1000}, 0, 1, RecordKind::kJump, 0, 0},
      change,
      {{0x1001}, {0x1000}, 0, 2, RecordKind::kJump, 0, 0},
      change,
      {{0x1001}, {0x1000}, 0, 2, RecordKind::kJump, 0, 0},
      {{0x1000}, {}, 0, 0, RecordKind::kDisable, kFlagAsync, 0},
  };
  TempFolder folder;
  ASSERT_TRUE(save_snapshot(*snapshot, "", path_in(folder), RecordStreamWriter::Packing::kNone));
  auto loaded = load_snapshot(path_in(folder));
  ASSERT_TRUE(loaded);
  const std::vector<std::string> truth = {
      "4096 90",
      "4097 eb00",
      "4099 eb00",
      "1 instruction not shown: the bytes at 0x1005 are no instruction",
      "4096 90",
      "4097 ebfd",
      "2 instructions not shown: the code at 0x1000 is not known"};
  EXPECT_EQ(items_of(snapshot), truth);
  EXPECT_EQ(items_of(loaded->snapshot), truth);
}

TEST(SnapshotFile, ThatLostRecordsHasAGapInTheirPlace) {
  TempFolder folder;
  ToyRun run = ToyProgram(3, 4, 6).run(3, 100000);
  ASSERT_GT(run.snapshot->records.size(), 20000u);
  ASSERT_TRUE(
      save_snapshot(*run.snapshot, "", path_in(folder), RecordStreamWriter::Packing::kNone));
  Bytes bytes = *read_file(path_in(folder), 1 << 26);
  bytes[300000] ^= 1;
  auto stream = parse_record_stream(bytes, "damaged", 1 << 26);
  ASSERT_TRUE(stream);
  LoadedSnapshot loaded = snapshot_of(std::move(*stream), "damaged");
  EXPECT_EQ(loaded.problems.size(), 1u);
  EXPECT_EQ(loaded.snapshot->records.size(), run.snapshot->records.size());
  History history(loaded.snapshot);
  EXPECT_EQ(history.gaps(), 1u);
  HistoryCursor cursor(history);
  cursor.seek_to_newest();
  EXPECT_EQ(cursor.item().instruction.address, run.executed.back());
}

}  // namespace
}  // namespace tailtrace
