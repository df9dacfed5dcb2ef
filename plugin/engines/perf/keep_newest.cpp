#include "plugin/engines/perf/keep_newest.h"

namespace tailtrace::perf {

void keep_newest(ThreadSnapshot& snapshot, std::uint64_t limit) {
  if (snapshot.records.size() <= limit) return;
  std::size_t dropped = snapshot.records.size() - limit;
  for (std::size_t i = 0; i < dropped; ++i)
    if (snapshot.records[i].kind == RecordKind::kCodeChange) ++snapshot.first_epoch.value;
  snapshot.records.erase(snapshot.records.begin(),
                         snapshot.records.begin() + static_cast<std::ptrdiff_t>(dropped));
  snapshot.first.value += dropped;
  snapshot.complete = false;
}

}  // namespace tailtrace::perf
