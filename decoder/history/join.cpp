#include "decoder/history/join.h"

#include <fmt/format.h>

#include <algorithm>

#include "decoder/code/former_maps.h"

namespace tailtrace {
namespace {

using Records = std::span<const BranchRecord>;

// Without the one that a reader made where the thread stood.
Records recorded(const ThreadSnapshot& snapshot) {
  Records records = snapshot.records;
  const bool is_closed = !records.empty() && records.back().kind == RecordKind::kDisable &&
                         (records.back().flags & kFlagSynthetic) != 0;
  return is_closed ? records.first(records.size() - 1) : records;
}

// Whether the older one's records reach the newer one's, and what both hold is the same.
bool overlap(const ThreadSnapshot& older, const ThreadSnapshot& newer) {
  const Records before = recorded(older), behind = recorded(newer);
  if (newer.first < older.first || newer.first.value > older.first.value + before.size())
    return false;
  const Records tail = before.subspan(newer.first.value - older.first.value);
  const std::size_t common = std::min(tail.size(), behind.size());
  // With nothing in common, that one begins where the other ends has to do.
  return std::ranges::equal(tail.first(common), behind.first(common));
}

Epoch epoch_behind(Records records, Epoch first) {
  first.value += static_cast<std::uint32_t>(std::ranges::count_if(
      records, [](const BranchRecord& r) { return r.kind == RecordKind::kCodeChange; }));
  return first;
}

bool knows_former(const ThreadSnapshot& snapshot, std::string_view line) {
  return snapshot.former_maps.find(std::string(line) + "\n") != std::string::npos;
}

// Whether a file was mapped when `older` was taken, and other code was there when `newer` begins.
bool has_replaced(const ThreadSnapshot& older, const ThreadSnapshot& newer) {
  bool any = false;
  with_epochs(newer.former_maps, [&](std::optional<Epoch>& until, std::string_view line) {
    any |= until && *until <= newer.first_epoch && !knows_former(older, line);
    return false;
  });
  return any;
}

// The former maps of both, where the newer one's first epoch is `seam`.
std::string join_former_maps(const ThreadSnapshot& older, const ThreadSnapshot& newer, Epoch seam) {
  auto move = [&](std::optional<Epoch>& until, std::string_view line) {
    if (!until) return true;
    const bool is_before = *until <= newer.first_epoch;
    until = is_before ? seam : Epoch{until->value - newer.first_epoch.value + seam.value};
    return !is_before || !knows_former(older, line);
  };
  auto is_older = [&](std::optional<Epoch>& until, std::string_view line) {
    return until ? *until <= seam : !knows_former(newer, line);
  };
  return with_epochs(newer.former_maps, move) + with_epochs(older.former_maps, is_older);
}

// Records of `older` that stand before all of `newer`.
ThreadSnapshot put_together(const ThreadSnapshot& older, Records before,
                            const ThreadSnapshot& newer, bool has_gap) {
  ThreadSnapshot joined = newer;
  joined.complete = older.complete;
  joined.first_epoch = older.first_epoch;
  joined.records.assign(before.begin(), before.end());
  if (has_gap) {
    BranchRecord gap;
    gap.kind = RecordKind::kGap;
    gap.flags = kFlagSynthetic | kFlagAsync;
    gap.extra = static_cast<std::uint16_t>(GapCause::kOverwritten);
    joined.records.push_back(gap);
  }
  auto code = std::make_shared<CodeImage>();
  Epoch seam = epoch_behind(before, older.first_epoch);
  code->overlay(*older.code, {0}, seam, {0});
  if (code->contradicts(*newer.code, newer.first_epoch) ||
      (has_gap && has_replaced(older, newer))) {
    BranchRecord change;
    change.kind = RecordKind::kCodeChange;
    change.flags = kFlagSynthetic | kFlagAsync;
    change.extra = 1;
    change.from = change.to = before.empty() || has_gap ? Address{} : before.back().to;
    joined.records.push_back(change);
    ++seam.value;
  }
  joined.former_maps = join_former_maps(older, newer, seam);
  code->overlay(*newer.code, newer.first_epoch, newer.code->newest(), seam);
  joined.code = std::move(code);
  const std::uint64_t more = joined.records.size();
  joined.first.value = newer.first.value - std::min(newer.first.value, more);
  joined.records.insert(joined.records.end(), newer.records.begin(), newer.records.end());
  return joined;
}

}  // namespace

Result<ThreadSnapshot> join_snapshots(const ThreadSnapshot& older, const ThreadSnapshot& newer) {
  if (older.thread != newer.thread || older.engine != newer.engine)
    return fail(ErrorCode::kUsage, "cannot join two histories",
                fmt::format("one is of thread {}.{} by {}, the other of {}.{} by {}",
                            older.thread.pid, older.thread.tid, older.engine, newer.thread.pid,
                            newer.thread.tid, newer.engine));
  // What was taken first may hold all of the other.
  if (newer.first < older.first && overlap(newer, older)) {
    if (newer.end() >= older.end()) return newer;
    return join_snapshots(newer, older);
  }
  if (!overlap(older, newer)) return put_together(older, older.records, newer, true);
  if (newer.end() < older.end()) return older;
  const Records before = Records(older.records).first(newer.first.value - older.first.value);
  return put_together(older, before, newer, false);
}

}  // namespace tailtrace
