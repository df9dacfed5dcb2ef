// What a program executes under qemu, as an Intel PT trace: benchmarks make their input with it, so
// that they run on any machine.
//
// Threading: pure function; it runs a process.
#pragma once

#include <string>
#include <vector>

#include "tests/support/pt_inputs.h"

namespace tailtrace::pt {

// The newest records of the first thread, up to that many. Its code, as it is at the end, is also
// written to a file of that path, for decoders that read files themselves.
// Errors: as QemuProcess::launch; as synthesize; kSystem when the file cannot be written.
Result<PtInput> record_as_pt(const std::vector<std::string>& program, std::uint64_t limit_records,
                             const std::string& code_path);

}  // namespace tailtrace::pt
