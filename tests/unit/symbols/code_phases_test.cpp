// Phases of a history: the same whether the records are copied or handed over; those of a history
// in which no file was replaced are not copied.
#include "decoder/symbols/code_phases.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

// Of 100 branches; code changes at the 30th and the 60th.
ThreadSnapshot history_of(std::string former_maps) {
  ThreadSnapshot snapshot;
  snapshot.former_maps = std::move(former_maps);
  snapshot.first_epoch = {7};
  for (std::uint64_t i = 0; i < 100; ++i) {
    BranchRecord record{{0x1000 + i}, {0x2000 + i}, i, 2, RecordKind::kJump, 0, 0};
    if (i == 30 || i == 60) record.kind = RecordKind::kCodeChange;
    snapshot.records.push_back(record);
  }
  return snapshot;
}

TEST(CodePhases, AreTheSameOfASnapshotThatIsHandedOver) {
  const std::string replaced =
      "was 8 7f1200001000-7f1200002000 r-xp 00001000 fe:01 12  /lib/a.so\n";
  for (const std::string& former_maps : {std::string(), replaced})
    for (std::uint64_t instructions : {0, 1, 2, 77, 78, 79, 80, 81, 138, 140, 199, 200, 500}) {
      SCOPED_TRACE(testing::Message() << former_maps << instructions);
      const ThreadSnapshot snapshot = history_of(former_maps);
      const std::vector<CodePhase> copied = code_phases(snapshot, instructions);
      const std::vector<CodePhase> handed_over =
          code_phases(ThreadSnapshot(snapshot), instructions);
      ASSERT_EQ(copied.size(), handed_over.size());
      for (std::size_t i = 0; i < copied.size(); ++i) {
        EXPECT_EQ(copied[i].first, handed_over[i].first);
        EXPECT_EQ(copied[i].records, handed_over[i].records);
      }
    }
  EXPECT_EQ(code_phases(history_of(replaced), 500).size(), 2u);
}

TEST(CodePhases, HaveTheRecordsThatWereHandedOver) {
  ThreadSnapshot snapshot = history_of({});
  const BranchRecord* records = snapshot.records.data();
  const std::vector<CodePhase> phases = code_phases(std::move(snapshot), 150);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases.front().records.data(), records);
  EXPECT_EQ(phases.front().records.size(), 76u);
}

}  // namespace
}  // namespace tailtrace
