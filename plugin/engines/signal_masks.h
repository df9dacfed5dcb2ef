// What a process has made of its signals, as /proc/PID/status tells it now (proc(5)).
//
// Threading: pure functions; they read /proc.
#pragma once

#include <cstdint>
#include <optional>

namespace tailtrace {

struct SignalMasks {
  std::uint64_t caught = 0, ignored = 0;  // bit N - 1 is signal N, by the system's number

  bool catches(int signal) const { return has(caught, signal); }
  bool ignores(int signal) const { return has(ignored, signal); }

 private:
  static bool has(std::uint64_t mask, int signal) {
    return signal > 0 && signal <= 64 && (mask >> (signal - 1) & 1) != 0;
  }
};

// Nothing: the process is gone.
std::optional<SignalMasks> signal_masks(std::int32_t pid);

}  // namespace tailtrace
