// The files in which programs name the code that they generate: where they are, and what they tell.
// JIT.md draws them.
//
// They lie where anybody may have put them, so they are looked at before they are believed: a perf
// map must belong to the user, to root or to who runs the process, and none is read through a link.
//
// Threading: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decoder/base/bytes.h"
#include "decoder/base/result.h"
#include "decoder/symbols/generated_functions.h"
#include "decoder/symbols/mapping.h"

namespace tailtrace {

constexpr std::size_t kMaxGeneratedFile_bytes = std::size_t{512} << 20;

// The perf map of a process that runs, in its own root folder and by its own number, or that has
// just ended; empty when there is none, or none to be believed.
std::string perf_map_of(std::int32_t pid);

// How the perf map of a process is called where it does not run in a container.
std::string perf_map_path(std::int32_t pid);

// The jitdumps among what is mapped, each once. Whoever writes one maps it, so that it is found.
std::vector<std::string> jit_dumps_of(const std::vector<Mapping>& mappings);

// Errors: as read_file; kBadInput when it is no regular file, or a link.
Result<Bytes> read_generated_file(const std::string& path);

// All functions that the files name: of those at one address the last of the last file. What cannot
// be read is added to `problems`. `perf_map` may be empty.
GeneratedFunctions read_generated_functions(const std::string& perf_map,
                                            const std::vector<std::string>& jit_dumps,
                                            std::vector<Error>& problems);

}  // namespace tailtrace
