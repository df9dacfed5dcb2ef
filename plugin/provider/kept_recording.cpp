#include "plugin/provider/kept_recording.h"

#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/mapping.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {

Result<KeptRecording> KeptRecording::create(const std::string& path) {
  auto writer = BundleWriter::create(path);
  if (!writer) return fail(std::move(writer.error()));
  return KeptRecording(std::move(*writer));
}

void KeptRecording::note_process(std::int32_t pid) {
  auto maps = process_maps(pid);
  if (!maps || maps->empty() || *maps == maps_[pid]) return;
  maps_[pid] = *std::move(maps);
  auto kept = writer_.keep_deleted(pid, maps_[pid]);
  if (!kept && failed_) failed_ = std::move(kept);
}

void KeptRecording::add(const ThreadSnapshot& snapshot, std::string name) {
  note_process(snapshot.thread.pid);
  const std::int32_t pid = snapshot.thread.pid;
  auto added = writer_.add(snapshot, maps_[pid], perf_map_of(pid));
  if (name.empty()) name = name_of("", snapshot.thread);
  about_.threads[snapshot.thread].name = std::move(name);
  if (added)
    empty_ = false;
  else if (failed_)
    failed_ = std::move(added);
}

Result<void> KeptRecording::finish() {
  if (!failed_ || empty_) return failed_;
  writer_.describe(std::move(about_));
  return writer_.finish();
}

}  // namespace tailtrace
