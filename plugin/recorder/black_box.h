// The bundle that a recorder leaves: histories of all threads of a subject that stands, and what
// there is to know beside them (decoder/bundle/BUNDLE.md).
//
// Threading: one thread at a time.
#pragma once

#include <vector>

#include "decoder/bundle/bundle.h"
#include "plugin/recorder/flight.h"
#include "plugin/recorder/subject.h"

namespace tailtrace {

// Why a bundle is made.
struct Occasion {
  std::string cause;
  int signal = 0;
  ThreadId thread;  // tid 0: none
  std::string command;
  BundleClock began;
};

BundleClock clock_now();

// What the process was started with, in one line.
std::string command_of(std::int32_t pid);

// Errors: no bundle can be written at `path`, or something is there.
Result<void> check_place(const std::string& path);

// A path for the next snapshot: `bundle`.1, .2, ...
std::string free_snapshot_path(const std::string& bundle);

// Everything but the last step: BundleWriter::finish() puts it in its place. What of a single
// thread or module cannot be had is told in `remarks` and left out. Where the plan's place does not
// take it, its fallback does, which is told as well. Errors: neither does; no thread has a history.
Result<BundleWriter> put_together(Subject& subject, const Occasion& occasion,
                                  const FlightPlan& plan, const std::string& path,
                                  std::vector<Error>& remarks);

}  // namespace tailtrace
