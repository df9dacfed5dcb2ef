// Traces to decode: real ones (TAILTRACE_REAL_PT names their folder) and generated ones.
//
// Threading: pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

// A piece of the code as a file has it, for decoders that read files themselves.
struct FileSection {
  std::string path;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t address = 0;
};

struct PtInput {
  std::string name;
  std::vector<FileSection> files;
  std::shared_ptr<const CodeImage> code;
  Bytes trace;
  DecoderConfig config;
  // When config.code_changes happened: so many blocks of a generated trace had been executed.
  std::vector<std::uint64_t> change_blocks;
};

// A trace bundle as LLDB writes it (trace.json): its first thread, its modules.
Result<PtInput> load_trace_json(const std::string& path);

// What a trace generator wrote: PREFIX.pt, PREFIX.img and PREFIX.sections, text lines
// "address size image_offset" (hexadecimal); and where there are PREFIX.truth and PREFIX.versions,
// code pages that changed. When they did only a trace with CYC packets tells.
Result<PtInput> load_generated(const std::string& prefix);

// The folder of real traces; nothing when there is none.
std::optional<std::string> real_pt_folder();

// An xz-compressed list of little-endian 64-bit addresses.
Result<std::vector<std::uint64_t>> read_addresses_xz(const std::string& path);

}  // namespace tailtrace::pt
