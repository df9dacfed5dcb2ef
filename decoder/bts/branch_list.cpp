#include "decoder/bts/branch_list.h"

#include <algorithm>

#include "decoder/record/branch_record.h"

namespace tailtrace::bts {
namespace {

constexpr std::size_t kSize = perf::kBtsRecordSize_bytes;

// Reads a part of the area from its end; returns false once a record was never written.
bool take_backwards(ByteSpan part, std::uint64_t limit, std::vector<Branch>& newest_first) {
  for (std::size_t end = part.size(); end >= kSize; end -= kSize) {
    if (newest_first.size() == limit) return true;
    Branch branch;
    branch.from = {load<std::uint64_t>(part, end - kSize)};
    branch.to = {load<std::uint64_t>(part, end - kSize + 8)};
    if (branch.from.is_null() && branch.to.is_null()) return false;
    newest_first.push_back(branch);
  }
  return true;
}

}  // namespace

BranchList read_bts_area(const perf::AuxView& area, std::uint64_t limit) {
  BranchList list;
  list.branches.reserve(std::min<std::uint64_t>(limit, area.size_bytes() / kSize));
  bool all_written = take_backwards(area.newer, limit, list.branches) &&
                     take_backwards(area.older, limit, list.branches);
  list.complete = !all_written;
  std::reverse(list.branches.begin(), list.branches.end());
  return list;
}

BranchList read_bts_samples(const perf::FixedRecords& records) {
  BranchList list;
  list.complete = records.first == 0 && !records.stranger;
  if (records.size_bytes != kBtsSampleSize_bytes) return list;
  list.branches.reserve(records.count);
  for (std::size_t i = 0; i < records.count; ++i) {
    Branch branch;
    branch.from = {load<std::uint64_t>(records[i], 8)};
    branch.to = {load<std::uint64_t>(records[i], 16)};
    list.branches.push_back(branch);
  }
  return list;
}

std::vector<Branch> read_branch_stack(const perf::Sample& sample) {
  std::vector<Branch> branches;
  branches.reserve(sample.branches.size());
  for (auto entry = sample.branches.rbegin(); entry != sample.branches.rend(); ++entry) {
    std::uint8_t flags = 0;
    if (entry->mispredicted) flags |= kFlagMispredicted;
    if (entry->in_transaction) flags |= kFlagInTransaction;
    if (entry->aborted) flags |= kFlagAbort;
    branches.push_back({entry->from, entry->to, flags});
  }
  return branches;
}

}  // namespace tailtrace::bts
