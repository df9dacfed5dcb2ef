// HitReport: the hits of hardware breakpoints, of all threads of a program, in the order of time,
// for people and as JSON.
//
// Threading: one thread at a time.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugin/cli/output_options.h"
#include "plugin/engines/perf/breakpoints.h"

namespace tailtrace {

// All general registers that perf events can log, in the order of the hits' values.
std::uint64_t all_registers();

class HitReport {
 public:
  explicit HitReport(std::vector<perf::BreakpointSpec> watches)
      : watches_(std::move(watches)), counts_(watches_.size()) {}

  // One more, behind the others.
  void watch(perf::BreakpointSpec spec) {
    watches_.push_back(std::move(spec));
    counts_.push_back(0);
  }

  // What is mapped now has names, too, should it be gone when its threads end.
  void maps_changed(std::int32_t pid);

  // Adds what a thread's watches logged, each at its index, when the thread ends. Names come from
  // what its process has mapped then.
  void add(ThreadId thread, const std::map<std::size_t, perf::MarkerLog>& logs);

  std::uint64_t count() const;
  std::size_t watches() const { return watches_.size(); }

  struct Form {
    std::uint64_t limit = 50;  // the newest so many of all
    bool registers = false;
  };
  void print(std::FILE* out, const Form& form) const;
  void print_json(std::FILE* out, const Form& form, JsonForm json) const;

 private:
  struct Hit {
    std::size_t watch = 0;
    perf::MarkerHit hit;
  };
  std::vector<Hit> newest(std::uint64_t limit) const;
  void note_maps(std::int32_t pid);

  std::vector<perf::BreakpointSpec> watches_;
  std::vector<std::uint64_t> counts_;
  std::vector<Hit> hits_;
  std::map<std::int32_t, std::string> maps_;  // by process, as it was last, then what it had before
  std::map<std::int32_t, std::string> seen_;
};

}  // namespace tailtrace
