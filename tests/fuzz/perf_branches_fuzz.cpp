// Branches from anywhere through a real program's code: whatever a BTS area claims, the records
// made of it must be ones that a history can follow, and the last says where the thread stands.
#include <cassert>

#include "decoder/bts/branch_flow.h"
#include "decoder/history/history.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/unit/bts/walker.h"

namespace tailtrace {
namespace {

using namespace bts;

const Walker& walked() {
  static const Walker walker = [] {
    Walker made(11, 200);
    for (int i = 0; i < 100; ++i) {
      made.step();
      if (i % 10 == 3) made.signal();
    }
    return made;
  }();
  return walker;
}

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  Bytes area;
  for (const Branch& branch : walked().branches()) {
    std::uint64_t words[3] = {branch.from.value, branch.to.value, 0};
    area.resize(area.size() + sizeof words);
    std::memcpy(area.data() + area.size() - sizeof words, words, sizeof words);
  }
  return {area};
}

void fuzz_one(ByteSpan input) {
  auto view = perf::order_aux_area(input, 0, perf::AuxHead::kRecordOffset);
  assert(view);
  BranchList list = read_bts_area(*view, ~0ull);
  CodeReader code(*walked().code());
  BranchFlow flow(code);
  for (std::size_t i = 0; i < list.branches.size(); ++i) {
    if (i % 50 == 49) flow.lost(GapCause::kLost);
    flow.add(list.branches[i]);
  }
  auto snapshot = std::make_shared<ThreadSnapshot>();
  snapshot->records = flow.finish({walked().pc()});
  assert(snapshot->records.back().kind == RecordKind::kDisable);
  assert(snapshot->records.back().from.value == walked().pc());
  for (const BranchRecord& record : snapshot->records) assert(!record.from.is_kernel());
  snapshot->code = walked().code();
  History history(snapshot);
  assert(history.stop() == Address{walked().pc()});
  // Every claim of the flow was held against the code: no record contradicts it afterwards.
  HistoryCursor cursor(history);
  for (cursor.seek_to_newest(); cursor.valid(); cursor.prev())
    assert(!cursor.item().is_gap || !gap_text(cursor.item().gap).empty());
}

}  // namespace tailtrace
