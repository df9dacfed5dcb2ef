// A fuzz target is one function over bytes. The driver feeds it mutations of the target's own seeds
// (and of the files named on its command line) for a while, always the same ones for the same
// --seed, and saves an input before it is tried, so that a crash leaves it behind.
//
//   NAME_fuzz [--seconds=N] [--runs=N] [--seed=N] [FILE...]
#pragma once

#include <vector>

#include "decoder/base/bytes.h"

namespace tailtrace {

// What the target is tried on first, and mutations start from.
std::vector<Bytes> fuzz_seeds();

// REQUIRES: returns for every input; whatever is wrong with the code aborts.
void fuzz_one(ByteSpan input);

}  // namespace tailtrace
