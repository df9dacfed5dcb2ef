// perf.data files for tests, put together from toy programs or byte by byte.
//
// Threading: values; pure functions but for the code file that one writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "decoder/perf_data/recording.h"
#include "tests/support/toy_program.h"

namespace tailtrace {

// A toy program whose code lies in a file, as perf.data files name it.
struct FiledProgram {
  std::shared_ptr<const CodeImage> image;
  std::string path;
  std::uint64_t size_bytes = 0;

  static FiledProgram write(const ToyProgram& program, const std::string& path);
  std::string maps() const;  // as /proc/PID/maps has them
};

// A run of the program, with the identity of a thread, as a perf.data file of one thread.
Bytes perf_file_of(const ToyRun& run, const FiledProgram& program);

// The same file as a pipe has it; `packed`: the kernel's records in it are.
Bytes as_pipe(ByteSpan file, bool packed = false);

// A record, with its header.
Bytes perf_record(std::uint32_t type, std::uint16_t misc, const std::vector<std::uint64_t>& words,
                  std::string_view text = {});

// All instructions of a history, in order.
std::vector<Address> instructions_of(const OpenedThread& opened);
std::size_t gaps_of(const OpenedThread& opened);

}  // namespace tailtrace
