// StepRow: asks the server below for many steps of a thread where it is asked for one
// (gdbserver_preload/step_row.h), and has what it made of them.
//
// Threading: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/base/types.h"
#include "decoder/code/former_maps.h"
#include "plugin/server/below/gdbserver_preload/step_row.h"

namespace tailtrace {

class StepRow {
 public:
  // Errors: kSystem.
  static Result<StepRow> make();

  // In the child that becomes the server; descriptors below `first_free` are for something else.
  void become_its(int first_free) const;

  using Range = FormerMaps::Range;
  struct Request {
    ThreadId thread;
    Address pc;                   // where it is
    std::span<const Range> code;  // if these are more than kMost_ranges, those next to it
    Range within{{}, {~0ull}};
    std::uint32_t most_steps = 0;  // the first one left out
    bool ends_at_loops = false;    // before a conditional branch that may lead back
  };
  // Before the server is asked to step that thread alone: it goes on by steps while it is both
  // within that range and in that code. It ends before what the recorder is to see first.
  void ask(const Request& request);

  struct Made {
    ThreadId thread;
    std::span<const std::uint64_t> pcs;  // behind each step but the last one; valid until ask()
  };
  // When the server has told of a stop. Whatever it has not made by then it does not make.
  Made take();

 private:
  struct Unmap {
    void operator()(StepRowMemory* memory) const;
  };

  UniqueFd fd_;
  std::unique_ptr<StepRowMemory, Unmap> memory_;
  ThreadId asked_;
};

}  // namespace tailtrace
