// AwaitedPlaces: places of libraries that a program has not loaded yet (dlopen). While there are
// any, a debug register of each thread stops it where the dynamic linker tells what it has loaded;
// none of the code in there has run then.
//
// Threading: the program's tracer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugin/engines/perf/marker_set.h"
#include "plugin/recorder/watch_place.h"

namespace tailtrace {

class AwaitedPlaces {
 public:
  explicit AwaitedPlaces(std::int32_t pid) : pid_(pid) {}

  // Whether it is MODULE`NAME of a file that is not mapped: then it is waited for.
  // Errors: kUsage for what is no place, and where the program loads none.
  Result<bool> awaits(const std::string& place, const WatchedProgram& program);
  bool any() const { return !awaited_.empty(); }

  // Told of every thread, before it runs and when it ends.
  Result<void> begins(ThreadId thread);
  void ends(ThreadId thread) { threads_.erase(thread); }

  // A thread stands where the dynamic linker calls: the places that have come, as many as there
  // are. They are to be looked up in loaded().
  Result<std::vector<std::string>> come();
  // The program as it is then: nothing of it can be run.
  WatchedProgram loaded() const {
    return {pid_, [] { return Result<void>(); }};
  }

  // What has not come.
  std::vector<Error> missing() const;

 private:
  struct Awaited {
    std::string place, module;
  };
  Result<void> find_hook(const std::string& place);

  std::int32_t pid_;
  perf::BreakpointSpec hook_;  // of the dynamic linker
  std::vector<Awaited> awaited_;
  std::map<ThreadId, perf::MarkerSet> threads_;  // empty where nothing is waited for
};

}  // namespace tailtrace
