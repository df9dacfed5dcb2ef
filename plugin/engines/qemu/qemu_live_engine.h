// QemuLiveEngine: the history of whatever program a process under qemu executes now. Each program
// has a recording of its own; open() turns to the next one.
//
// Everything since the program's first instruction is shown: who wants less remembers where it
// began.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "plugin/engines/qemu/qemu_engine.h"

namespace tailtrace {

class QemuLiveEngine final : public Engine {
 public:
  // Errors: as QemuEngine::open.
  Result<void> open(const std::string& process_folder);
  void close();

  std::string_view name() const override { return "qemu"; }
  Result<void> start(ThreadId thread) override;
  Result<void> stop(ThreadId thread) override;
  bool is_recording(ThreadId thread) const override { return started_.contains(thread.tid); }
  bool was_born_recorded(ThreadId thread) const override { return !elders_.contains(thread.tid); }
  void set_thread_room(std::int32_t pid, std::optional<std::uint64_t> threads) override {
    if (engine_) engine_->set_thread_room(pid, threads);
  }
  // Whether it has executed anything there.
  bool has_executed(Address begin, Address end);
  // As QemuEngine's.
  Result<void> set_watched(const WatchedMemory& watched) {
    return engine_ ? engine_->set_watched(watched) : fail(closed());
  }
  Result<void> set_stepped(const SteppedThreads& stepped) {
    return engine_ ? engine_->set_stepped(stepped) : fail(closed());
  }
  Result<void> set_caught(const CaughtNumbers& caught) {
    return engine_ ? engine_->set_caught(caught) : fail(closed());
  }
  Result<void> set_passed(const PassedNumbers& passed) {
    return engine_ ? engine_->set_passed(passed) : fail(closed());
  }
  Result<void> set_letting_go(const LettingGo& letting_go) {
    return engine_ ? engine_->set_letting_go(letting_go) : fail(closed());
  }
  Result<Position> head(ThreadId thread) const override;
  Result<ThreadSnapshot> snapshot(ThreadId thread, const Stop& stop, std::uint64_t limit) override;

 private:
  Error closed() const;

  std::unique_ptr<QemuEngine> engine_;
  std::set<std::int32_t> started_;
  std::set<std::int32_t> elders_;  // threads that were there when the first one was started
};

}  // namespace tailtrace
