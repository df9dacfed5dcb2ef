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
  // Before the server is asked to step that thread, which is at `pc`, alone: it goes on by steps
  // while it is both in that range and in that code, up to `most_steps` more; where that is more
  // than kMost_ranges, in those next to it. It ends before what the recorder is to see first.
  void ask(ThreadId thread, Address pc, std::span<const Range> code, Range within,
           std::uint32_t most_steps);

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
