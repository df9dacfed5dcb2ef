// Flight: what an always-on recorder is asked for, and how it came out. It records until something
// happens to the program, and then leaves one bundle with the last history of every thread.
//
// Threading: values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

// A write or any access to memory, as a debug register sees it.
struct WatchedPlace {
  Address address;
  unsigned size_bytes = 8;  // 1, 2, 4 or 8, and aligned to it
  bool reads = false;       // reading it counts as well

  friend bool operator==(const WatchedPlace&, const WatchedPlace&) = default;
};

// The same of a place that is looked up in the program, as resolve_watch() understands it.
struct WatchedName {
  std::string name;
  bool reads = false;
};

// What ends the recording, beside a crash.
struct Triggers {
  std::vector<int> signals;            // coming to the program; the system's numbers
  std::vector<std::string> functions;  // being entered: as a debugger names them
  std::vector<WatchedPlace> places;
  std::vector<WatchedName> names;

  bool needs_debug_registers() const {
    return !functions.empty() || !places.empty() || !names.empty();
  }
};

struct FlightPlan {
  std::string bundle;    // a new folder
  std::string fallback;  // where the bundle goes when it cannot be written there; may be empty
  std::uint64_t ring_records = 1ull << 16;  // of each thread
  Triggers triggers;
  bool core = false;          // put a core file into the bundle
  bool copy_modules = true;   // the files that were executed, too
  bool ends_by_user = false;  // SIGINT, SIGTERM and SIGHUP end the recording, with a bundle; else
                              // SIGTERM and SIGHUP are passed on to the program
  // Told what happens meanwhile; each text is one or more lines.
  std::function<void(std::string_view)> say;
  std::function<void()> begins = [] {};  // called when the recording has begun
};

struct FlightEnd {
  std::optional<int> status;  // the program's wait status, if it has ended
  std::string bundle;         // where it is; empty: nothing happened that it is for
};

}  // namespace tailtrace
