// NumPy file: a thread's records as `numpy.load` has them, a structured array whose fields are
// those of RECORD.md (numpy.lib.format, version 1.0). It can be mapped: nothing is packed.
//
// Threading: pure functions.
#pragma once

#include "decoder/base/result.h"
#include "decoder/export/sinks.h"
#include "decoder/history/history.h"
#include "decoder/history/range.h"

namespace tailtrace {

// The records of these items (range_records.h). REQUIRES: a range of the history, not empty.
void write_numpy_records(const History& history, Range range, const ByteSink& sink);

}  // namespace tailtrace
