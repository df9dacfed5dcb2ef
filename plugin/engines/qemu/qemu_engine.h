// QemuEngine: the history of a process that runs, or ran, under qemu with our plugin.
//
// The plugin records from the program's first instruction, all threads; the engine reads its
// folder. start() and stop() only decide from where on a thread's history is shown.
//
// A snapshot of a running thread ends where its newest record leads.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decoder/history/opened_thread.h"
#include "plugin/engines/engine.h"
#include "plugin/engines/qemu/open_run.h"
#include "plugin/engines/qemu/process_folder.h"

namespace tailtrace {

class QemuEngine : public Engine {
 public:
  struct Options {
    bool since_start = false;  // show what was recorded before start() too
  };
  struct Thread {
    ThreadId thread;
    RingState state;
    int ended_by;  // the signal that came to it and ended the program; 0: none
  };

  // Over a process's folder in a session. Errors: as ProcessFolder::open.
  static Result<std::unique_ptr<QemuEngine>> open(const std::string& folder, Options options);
  static Result<std::unique_ptr<QemuEngine>> open(const std::string& folder) {
    return open(folder, Options());
  }

  std::string_view name() const override { return "qemu"; }

  // Threads are told apart by `tid` alone: qemu's stub calls each process 1.
  Result<void> start(ThreadId thread) override;
  Result<void> stop(ThreadId thread) override;
  bool is_recording(ThreadId thread) const override;
  Result<Position> head(ThreadId thread) const override;
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override;

  void set_thread_room(std::int32_t, std::optional<std::uint64_t> threads) override;
  // As ProcessFolder's.
  Result<void> set_watched(const WatchedMemory& watched) { return folder_.set_watched(watched); }
  Result<void> set_stepped(const SteppedThreads& stepped) { return folder_.set_stepped(stepped); }
  Result<void> set_caught(const CaughtNumbers& caught) { return folder_.set_caught(caught); }
  Result<void> set_passed(const PassedNumbers& passed) { return folder_.set_passed(passed); }
  Result<void> set_letting_go(const LettingGo& letting_go) {
    return folder_.set_letting_go(letting_go);
  }

  // The newest `limit` records of a thread of which it is not known where it stands: it has ended,
  // or its process has, or it runs. start() is not needed and nothing is hidden.
  // Errors: kGone when the thread has no ring.
  Result<ThreadSnapshot> last_snapshot(ThreadId thread, std::uint64_t limit);

  // The same; what nobody writes any more is read where it is, and costs the same for any size.
  Result<OpenedThread> open_thread(ThreadId thread, std::uint64_t limit);

  // All threads that ever ran and whose rings are kept, in the order of ProcessFolder::rings().
  Result<std::vector<Thread>> threads();

  ProcessFolder& folder() { return folder_; }

 private:
  // What a ring held at one moment.
  struct Look {
    OpenRun run;
    RecordRange range;
    std::uint32_t epoch = 0;
    bool is_still = false;  // nothing moved meanwhile
  };

  QemuEngine(ProcessFolder folder, Options options)
      : folder_(std::move(folder)), options_(options) {}

  Result<OpenRun> open_run(const Ring& ring) const;
  Result<Look> look_at(const Ring& ring, std::uint64_t limit) const;
  // What the records of a ring belong to; `epoch` is the process's at the end of them.
  struct Framed {
    ThreadFrame frame;
    Epoch newest;  // at the end of them
  };
  Result<Framed> frame_of(const Ring& ring, Position first, std::span<const BranchRecord> records,
                          std::uint32_t epoch);
  Closing last_closing(const Ring& ring, const OpenRun& run, Address newest_target,
                       const Framed& framed);
  EdgeCause end_cause(const Ring& ring);

  mutable ProcessFolder folder_;  // finds new rings
  Options options_;
  std::map<std::int32_t, OpenRun> started_;  // by tid: where each stood
};

}  // namespace tailtrace
