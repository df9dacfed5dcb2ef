// Branches as the hardware names them, two addresses each, out of the three places that have them:
// the AUX area of intel_bts, branch samples in a data ring, and last branch records in samples.
//
// Threading: pure functions over bytes.
#pragma once

#include <vector>

#include "decoder/base/types.h"
#include "decoder/perf/aux_area.h"
#include "decoder/perf/data_ring.h"
#include "decoder/perf/events.h"

namespace tailtrace::bts {

// A taken branch. Where `from` is a kernel address the kernel came back to user code at `to`: such
// records are kept here because they tell where, and are dropped by whoever makes records.
struct Branch {
  Address from;
  Address to;
  std::uint8_t flags = 0;  // RecordFlags, as far as the source knows them

  friend bool operator==(const Branch&, const Branch&) = default;
};

struct BranchList {
  std::vector<Branch> branches;  // oldest first
  // Nothing was overwritten: the list begins where recording did.
  bool complete = false;
};

// The newest records of an intel_bts area, `limit` at most. `area` is ordered with kRecordOffset;
// an all-zero record was never written.
BranchList read_bts_area(const perf::AuxView& area, std::uint64_t limit);

// Samples of 24 bytes: header, from, to (sample_type is IP and ADDR).
BranchList read_bts_samples(const perf::FixedRecords& records);

constexpr std::uint16_t kBtsSampleSize_bytes = 24;

// One last-branch-record stack, turned round.
std::vector<Branch> read_branch_stack(const perf::Sample& sample);

}  // namespace tailtrace::bts
