// How a program under qemu is let go of.
#include "plugin/server/qemu/qemu_inferior.h"

namespace tailtrace {

// What is on its way to the debugger must not reach the program: the recorder sees to that
// (engines/qemu_plugin/unheard.h).
void QemuInferior::detach(const std::function<bool(std::uint8_t signal)>& passes) {
  engine_.set_thread_room(pid(), std::nullopt);
  (void)engine_.set_watched({}).has_value();
  (void)engine_.set_caught({}).has_value();
  LettingGo letting_go{1, is_kept_ ? 1u : 0u, interrupt_sent_ ? 1u : 0u, 0, {}};
  for (const auto& [tid, by_stub] : steps_)
    if (by_stub && letting_go.step_count < kMaxSteppedThreads)
      letting_go.steps[letting_go.step_count++] = tid;
  (void)engine_.set_letting_go(letting_go).has_value();
  steps_.clear();
  if (stub_ && !running_) {
    doomed_.merge(breakpoints_);
    remove_doomed();
    const std::uint8_t signal = told_signal_;
    if (signal != 0 && passes(signal))
      deliver(signal);
    else
      let_run("vCont;c");
  }
  process_.let_go();
  was_let_go_ = true;
}

}  // namespace tailtrace
