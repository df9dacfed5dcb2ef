// The two forms in which GDB asks for a branch trace.
//
// Threading: values.
#pragma once

namespace tailtrace {

enum class BtraceFormat { kBts, kPt };

}  // namespace tailtrace
