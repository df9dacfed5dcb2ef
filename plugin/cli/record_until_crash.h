// `tailtrace run --on-crash=BUNDLE`: a program that is started and recorded until something happens
// to it.
//
// Threading: one thread; waits for the program.
#pragma once

#include <cstdio>

#include "decoder/base/result.h"
#include "plugin/cli/recorder_options.h"
#include "plugin/recorder/branch_keeper.h"
#include "plugin/server/below/server_options.h"

namespace tailtrace {

// The engine of `serve` is chosen, its program named by its path. Returns the program's exit
// status, 128 + N if signal N ended it. Errors: it cannot be recorded; no bundle could be written.
Result<int> record_until_crash(const ServeOptions& serve, const RecorderOptions& options,
                               std::FILE* err);

// Who keeps the branches of a program that the processor runs itself: by what `engine` says.
// `ring_records` of 32 bytes for each thread. Errors: there is no place for them.
Result<std::unique_ptr<BranchKeeper>> keeper_of(EngineChoice engine, std::uint64_t ring_records);

}  // namespace tailtrace
