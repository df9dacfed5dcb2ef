// What a bundle tells beside histories: why it was made, how the threads stood, which files their
// code came from. Any of it may be missing.
//
// Threading: values; pure functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "decoder/base/result.h"
#include "decoder/base/types.h"

namespace tailtrace {

// Three clocks read at one moment: by two of these, times of records become times of day.
struct BundleClock {
  std::uint64_t tsc = 0;           // the processor's time stamp counter
  std::uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  std::uint64_t realtime_ns = 0;   // CLOCK_REALTIME

  friend bool operator==(const BundleClock&, const BundleClock&) = default;
};

// A file that was mapped to be executed.
struct BundleModule {
  std::string path;      // on the machine that recorded
  std::string build_id;  // hexadecimal; empty: it has none
  std::string copy;      // of it in the bundle's folder, "modules/1/libc.so.6"; empty: none
  // Not written: the build id of the file that is at `path` here, where that is another one.
  std::string other_build_id = {};

  friend bool operator==(const BundleModule&, const BundleModule&) = default;
};

// Copies of files that were executed lie below.
constexpr char kModulesFolder[] = "modules";

struct BundleThreadState {
  std::string name;
  std::vector<std::pair<std::string, std::uint64_t>> registers;  // "rip", ...
  // Where it stood, and where each call that was open goes on, innermost first.
  std::vector<Address> stack = {};

  friend bool operator==(const BundleThreadState&, const BundleThreadState&) = default;
};

struct BundleAbout {
  std::string cause;  // "SIGSEGV", "snapshot", ...; for people
  int signal = 0;     // the system's number; 0: it was none
  ThreadId thread;    // to which it happened; 0 when to none
  std::string command;
  std::vector<BundleClock> clocks;  // when recording began, and when it ended
  std::vector<BundleModule> modules;
  std::string core;  // "core"; empty: there is none
  std::map<ThreadId, BundleThreadState> threads;

  friend bool operator==(const BundleAbout&, const BundleAbout&) = default;
};

// Looks whether files that have no copy in the bundle are the ones that were executed, by their
// build ids. Files that are not here are left alone.
void compare_build_ids(BundleAbout& about);

// What readers are told of files that are other ones: empty when there are none.
std::vector<Error> other_modules(const BundleAbout& about);

// The text of /proc/PID/maps where files that are other ones have paths that lead nowhere, so that
// nobody takes names from them.
std::string maps_with_other_builds(const std::string& maps,
                                   const std::vector<BundleModule>& modules);

// The path of a file's copy in the bundle at `folder`; empty when it has none.
std::string copy_of(const std::vector<BundleModule>& modules, const std::string& path,
                    const std::string& folder);

// The same with the paths of the copies in the bundle at `folder`; jitdumps that have no copy have
// paths that lead nowhere, too.
std::string maps_to_copies(const std::string& maps, const std::vector<BundleModule>& modules,
                           const std::string& folder);

// The other way: the paths on the machine that recorded, of what has a copy under modules/ there.
std::string maps_from_copies(const std::string& maps, const std::vector<BundleModule>& modules,
                             const std::string& folder);

}  // namespace tailtrace
