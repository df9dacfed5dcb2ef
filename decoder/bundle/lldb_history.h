// Histories out of LLDB's trace bundles: the raw trace of a thread, decoded.
//
// Threading: pure functions.
#pragma once

#include <memory>
#include <vector>

#include "decoder/bundle/lldb_bundle.h"
#include "decoder/history/snapshot.h"

namespace tailtrace {

struct LldbHistory {
  std::shared_ptr<const ThreadSnapshot> snapshot;
  std::vector<Error> problems;  // modules whose code could not be read: gaps stand for it
};

// A thread of a process of the bundle. Errors: kBadInput when its trace is not kept by thread but
// by processor; the trace cannot be read.
Result<LldbHistory> load_lldb_thread(const LldbBundle& bundle, const LldbProcess& process,
                                     const LldbThread& thread);

}  // namespace tailtrace
