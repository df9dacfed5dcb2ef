// Work that takes long: it says how far it is, to a function that Python has set, and lets Ctrl-C
// through meanwhile.
//
// Threading: each object belongs to the thread that does the work, which does not hold the
// interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>

namespace tailtrace::python {

// Lets Ctrl-C through: throws what pybind11 turns into KeyboardInterrupt.
// REQUIRES: the interpreter's lock is not held.
void check_signals();

class Progress {
 public:
  // `total` 0: nobody knows how much there is.
  Progress(const char* what, std::uint64_t total) : what_(what), total_(total) {}

  // Cheap enough to be called for each item. Throws as check_signals, and whatever the function
  // that Python has set raises.
  void at(std::uint64_t done) {
    if ((done & kMask_items) == kMask_items) look(done);
  }
  // The same, at once.
  void look(std::uint64_t done);

  // The work is done: who was told of it is told so.
  void finish();

 private:
  static constexpr std::uint64_t kMask_items = (1 << 14) - 1;
  static constexpr std::chrono::milliseconds kPeriod{50};

  const char* what_;
  std::uint64_t total_;
  bool told_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void bind_progress(pybind11::module_& module);

}  // namespace tailtrace::python
