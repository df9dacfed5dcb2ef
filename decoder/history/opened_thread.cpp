#include "decoder/history/opened_thread.h"

#include <algorithm>

#include "decoder/history/record_slices.h"

namespace tailtrace {

OpenedThread records_in_place(ThreadFrame frame, std::shared_ptr<const void> owner,
                              std::span<const BranchRecord> records, std::uint64_t limit_records) {
  if (records.size() > limit_records) {
    std::span<const BranchRecord> dropped = records.first(records.size() - limit_records);
    records = records.last(limit_records);
    frame.complete = false;
    frame.first.value += dropped.size();
    // Epochs that no code is of need not be told apart, and gigabytes not be read for that.
    if (frame.code->newest() > frame.first_epoch)
      frame.first_epoch.value += static_cast<std::uint32_t>(
          std::ranges::count(dropped, RecordKind::kCodeChange, &BranchRecord::kind));
  }
  OpenedThread thread;
  thread.source = std::make_shared<RecordSlices>(std::move(owner), records, frame);
  thread.frame = std::move(frame);
  return thread;
}

OpenedThread opened_thread(LoadedSnapshot loaded, std::uint64_t limit_records) {
  const ThreadSnapshot& snapshot = *loaded.snapshot;
  OpenedThread thread =
      records_in_place(snapshot, loaded.snapshot, snapshot.records, limit_records);
  thread.maps = std::move(loaded.maps);
  thread.problems = std::move(loaded.problems);
  thread.perf_map = std::move(loaded.perf_map);
  return thread;
}

}  // namespace tailtrace
